package demangle

import (
	"fmt"
	"strings"
	"testing"
)

// TestHostile takes names that are deep, or that unfold: to twice their length
// with each part, or by a long part read again and again.
func TestHostile(t *testing.T) {
	var twice, again, backs, packs strings.Builder
	twice.WriteString("_Z1fSt4pairIiiE")
	backs.WriteString("_RINvC1a1fTuuE")
	last := len("INvC1a1f")
	for i := range 40 {
		fmt.Fprintf(&twice, "S_IS%[1]s_S%[1]s_E", strings.ToUpper(base36(i)))
		at := backs.Len() - len("_R")
		fmt.Fprintf(&backs, "TB%[1]s_B%[1]s_E", base62(last-1))
		last = at
	}
	backs.WriteByte('E')
	long := strings.Repeat("x", 12000)
	fmt.Fprintf(&again, "_Z1f12000%s%s", long, strings.Repeat("S_", 1500))
	packs.WriteString("_Z1fIJ" + strings.Repeat("i", 3000) + "EEv" + strings.Repeat("DpPT_", 2000))
	for _, name := range []string{
		twice.String(), again.String(), backs.String(), packs.String(),
		"_Z1f" + strings.Repeat("P", 16000) + "i",
		"_Z1f" + strings.Repeat("PFv", 5000) + "v" + strings.Repeat("E", 5000),
		"_Z1f" + strings.Repeat("A1_", 5000) + "i",
		"_Z1f" + strings.Repeat("M1A", 5000) + "i",
		"_Z" + strings.Repeat("ZN1AC1EvE", 1500) + "1f",
		"_ZN" + strings.Repeat("1a", 8000) + "E",
		"_Z1fI" + strings.Repeat("J", 8000) + strings.Repeat("E", 8000),
		"_Z1fI" + strings.Repeat("LZ1fI", 2000),
		"_Z1f" + strings.Repeat("U", 100) + strings.Repeat("UlU", 3000),
		"_R" + strings.Repeat("M", 16000),
		"_RINvC1a1f" + strings.Repeat("T", 16000),
		"_RINvC1a1fFG" + strings.Repeat("z", 9) + "_EuE",
		"_RNvB_1a", "_RB_", "_RNvC0_9999999999999999999a", "_Z99999999999999999999a",
		"_Z", "_R", "_ZN", "_ZNE", "_Z\x00", "_ZS", "_ZNS", "_Z1fS999999_", "_ZN1aC1", "_ZThn", "_ZTc",
	} {
		for _, read := range []func([]byte, string) ([]byte, bool){Append, AppendName} {
			if out, ok := read(nil, name); ok && len(out) > maxOutput {
				t.Errorf("%.40s… is %d bytes", name, len(out))
			}
		}
		for n := range min(len(name), 300) {
			Append(nil, name[:n])
		}
	}
}

func base36(n int) string { return digits(n, 36) }

func base62(n int) string { return digits(n, 62) }

func digits(n, base int) string {
	const all = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if n < base {
		return all[n : n+1]
	}
	return digits(n/base, base) + all[n%base:n%base+1]
}
