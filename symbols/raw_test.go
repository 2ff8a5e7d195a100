package symbols

import (
	"slices"
	"testing"
)

func found(matches []Match) (names []string) {
	for _, m := range matches {
		names = append(names, m.Function.Raw())
	}
	return names
}

// Raw names are found by their beginning and by a part, as they stand in the table.
func TestSearchRaw(t *testing.T) {
	f := named("_ZN4shop5Order3addEi", "_ZN4shop5OrderC1Ev=_ZN4shop5OrderC2Ev", "xx_ZN4shop5Order", "main", "_ZN4shop5Order")
	f.Functions[3].Version = "V_1"
	f.Functions[4].Place = Imported
	for _, tt := range []struct {
		query string
		limit int
		want  []string
		total int
	}{
		{"_ZN4shop5Order", 9, []string{"_ZN4shop5OrderC1Ev", "_ZN4shop5Order3addEi", "xx_ZN4shop5Order", "_ZN4shop5Order"}, 4},
		{"_ZN4shop5Order", 2, []string{"_ZN4shop5OrderC1Ev", "_ZN4shop5Order3addEi"}, 4},
		{"_ZN4shop5OrderC2Ev", 9, []string{"_ZN4shop5OrderC1Ev"}, 1},
		{"3addei", 9, []string{"_ZN4shop5Order3addEi"}, 1},
		{"3ADD", 9, nil, 0},
		{"main@V_1", 9, []string{"main@V_1"}, 1},
		{"_ZN4nothing", 9, nil, 0},
	} {
		got, total := SearchRaw([]*File{f}, tt.query, tt.limit)
		if !slices.Equal(found(got), tt.want) || total != tt.total {
			t.Errorf("%q finds %q, %d in all, want %q, %d", tt.query, found(got), total, tt.want, tt.total)
		}
	}
	if got, _ := SearchRaw([]*File{f}, "C2Ev", 1); got[0].Name != "shop::Order::Order()" || got[0].Spans != nil {
		t.Errorf("%+v", got[0])
	}
}

// Of more matches than are wanted the best are kept, however many come before them.
func TestSearchRawKeepsTheBest(t *testing.T) {
	f := synthetic(20000)
	all, total := SearchRaw([]*File{f}, "_Z", len(f.Functions))
	few, again := SearchRaw([]*File{f}, "_Z", 7)
	if total != again || total != len(all) || !slices.Equal(found(few), found(all[:7])) {
		t.Errorf("%d of %d: %q, want %q", len(few), again, found(few), found(all[:7]))
	}
}

func BenchmarkSearchRaw(b *testing.B) {
	f := synthetic(100000)
	for b.Loop() {
		SearchRaw([]*File{f}, "_Z", 500)
	}
}
