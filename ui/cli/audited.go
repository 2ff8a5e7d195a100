package cli

import (
	"fmt"

	"uprobetop/probes"
	"uprobetop/ui/format"
)

// audited says whether the independent count agrees with ours; nothing if there was
// none. Where it did not count all the time it speaks neither for nor against.
func audited(s *probes.Snapshot, names map[probes.ID]string) (sentences []string, agrees bool) {
	agrees = true
	n, under, share := 0, uint64(0), 0.0
	for i := range s.Probes {
		p := &s.Probes[i]
		a, seen := p.Audit, p.Hits+p.Filtered
		switch {
		case a == nil:
		case a.Partly:
			sentences = append(sentences, "audit: the kernel's own count of "+names[p.ID]+" did not run all the time, and says nothing")
		case !a.Agrees:
			agrees = false
			sentences = append(sentences, fmt.Sprintf("audit: %s hits of %s were seen by the kernel and %s by us, %s",
				witnessed(a), names[p.ID], format.Count(seen), off(a, seen)))
		default:
			n++
			under = max(under, a.Max-a.Min)
			share = max(share, shareOf(a.Max-a.Min, seen))
		}
	}
	switch {
	case n == 0 || !agrees:
	case under == 0:
		sentences = append(sentences, "audit: an independent count of each point agrees exactly")
	default:
		sentences = append(sentences, fmt.Sprintf("audit: an independent count of each point agrees, to within %s%s",
			format.Things(int(under), "hit"), wide(share)))
	}
	return sentences, agrees
}

// shareOf is how much of the hits is not checked, from 0 to 1.
func shareOf(under, seen uint64) float64 {
	if under >= seen {
		return min(1, float64(under)) // also of none, which can have missed all
	}
	return float64(under) / float64(seen)
}

// wide warns of an agreement that says little: with more than one hit in a hundred of a
// function not checked.
func wide(share float64) string {
	if share <= 0.01 {
		return " at its beginning and end"
	}
	return fmt.Sprintf(" (at most %.0f %%) at its beginning and end: run longer for a closer check, or start the program after --", 100*share)
}

func witnessed(a *probes.Audit) string {
	if a.Min == a.Max {
		return format.Count(a.Min)
	}
	return format.Count(a.Min) + " to " + format.Count(a.Max)
}

// off is by how much, at least, the two counts differ.
func off(a *probes.Audit, seen uint64) string {
	if seen < a.Min {
		return format.Count(a.Min-seen) + " too few"
	}
	return format.Count(seen-a.Max) + " too many"
}
