package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"uprobetop/probes"
	"uprobetop/symbols"
	"uprobetop/ui/format"
)

// balance is what a verdict is made of, probe by probe.
type balance struct {
	*probes.Snapshot
	found *findings
	all   remarks
	exact bool
	said  map[string]bool        // reasons for silence
	old   map[*symbols.File]bool // those of which it is said
}

// verdict says whether the numbers add up, and what they leave out: one sentence
// a line.
func verdict(s *probes.Snapshot, names map[probes.ID]string, found *findings) string {
	doubts, left := found.inexact(names), 0
	b := balance{s, found, remarks{of: map[string]*remark{}}, len(doubts) == 0, map[string]bool{}, map[*symbols.File]bool{}}
	for i := range s.Probes {
		p := &s.Probes[i]
		b.terms(p, names[p.ID])
		if !p.Stood() {
			left++
			continue
		}
		b.silence(p, names[p.ID])
		b.beside(p, names[p.ID])
	}
	losses := b.losses()
	audit, agrees := audited(s, names)
	first := "exact: every hit is counted"
	switch {
	case !b.exact || !agrees:
		first = "not exact"
	case left > 0:
		first = fmt.Sprintf("exact for what is probed, and %s not", format.Things(left, "function"))
	}
	return strings.Join(slices.Concat([]string{first}, doubts, b.all.sentences(), found.ofKernel(s), losses, audit), "\n")
}

// terms tells of the calls of a probe that are in no latency.
func (b *balance) terms(p *probes.Stats, name string) {
	if p.Latency != nil && p.Balance() != 0 {
		b.exact = false
		b.all.add(fmt.Sprintf("the books of %%[2]s are off by %d", p.Balance()), 1, name)
	}
	b.all.add("%s calls of %s are not in the latency: their thread had 64 returns pending", p.Missed.Depth, name)
	b.all.add("%s calls of %s are not in the latency: there was no room to follow them", p.Missed.NoSlot, name)
	b.all.add("%s calls of %s have not returned: in flight or unwound, which session cookies do not tell apart", uint64(max(p.Unreturned, 0)), name)
	b.all.add("%s calls in flight of %s are not listed: their threads are outside of this PID namespace", uint64(b.Unlisted(p)), name)
}

// silence says why a probe has no hits, or no returns.
func (b *balance) silence(p *probes.Stats, name string) {
	switch why, told := b.found.silence(p, b.said); {
	case told:
	case why != "":
		b.all.add("%[2]s: "+escaped(why), 1, name)
	case p.Hits > 0:
	case p.Kind == probes.USDT:
		b.all.add("no thread passed %[2]s", 1, name)
	default:
		b.all.add(uncalled(b.Snapshot, p), 1, name)
		if more := b.found.more(p); more != "" && len(b.said) < explained {
			b.said[more] = true
			b.all.add("%[2]s: "+escaped(more), 1, name)
		}
	}
}

// beside tells what its hits and returns are not.
func (b *balance) beside(p *probes.Stats, name string) {
	if note := probes.UnmarkedNote(p.File, p.Function); note != "" {
		b.exact = false
		b.all.add("%[2]s is "+escaped(note), 1, name)
	}
	of := "of calls from before, or of a forked child"
	if p.Missed.NoSlot > 0 {
		of = "of calls from before, of a forked child, or of those that there was no room for"
	}
	b.all.add("%s returns of %s had no hit: "+of, p.Orphans, name)
	if badge := p.File.Badge(); badge != "" && !b.old[p.File] {
		b.old[p.File] = true
		b.all.add("%[2]s was "+badge+": what is probed is what runs", 1, symbols.Printable(filepath.Base(p.File.Path)))
	}
	if p.HitsAgain() {
		b.all.add("%[2]s: "+probes.AgainNote, 1, name)
	}
	b.all.add("%s hits of %s by others are left out", p.Filtered, name)
}

// losses tells what is missing of all probes together.
func (b *balance) losses() (all []string) {
	add := func(n uint64, text string) {
		if n > 0 {
			all = append(all, format.Count(n)+text)
		}
	}
	add(b.HeldBack, " slow calls are not printed: they came faster than the rate limit lets through")
	add(b.Lost.Calls-b.Lost.Busy, " slow calls are not printed: the ring buffer was full")
	add(b.Lost.Busy, " slow calls are not printed: the ring buffer was locked for too long")
	add(b.Unfollowed, " processes could not be followed: more than 16,384 ran at once")
	b.exact = b.exact && b.Unfollowed == 0
	return all
}

// remarks are notes on probes, one sentence for all that have the same to say.
type remarks struct {
	order []string
	of    map[string]*remark
}

type remark struct {
	n     uint64
	names []string
}

// add notes a number of things of a probe; the text has a place for the number and
// one for the names.
func (r *remarks) add(text string, n uint64, name string) {
	if n == 0 {
		return
	}
	if r.of[text] == nil {
		r.order = append(r.order, text)
		r.of[text] = &remark{}
	}
	r.of[text].n += n
	r.of[text].names = append(r.of[text].names, name)
}

func (r *remarks) sentences() (all []string) {
	for _, text := range r.order {
		all = append(all, fmt.Sprintf(text, format.Count(r.of[text].n), format.List(r.of[text].names)))
	}
	return all
}

// uncalled says that there is no hit, and why that can be.
func uncalled(s *probes.Snapshot, p *probes.Stats) string {
	const none = "no call reached %[2]s"
	if s.Filter.Follow && p.File.Library {
		chosen := ""
		if p.Function.Chosen {
			chosen = " or chose another variant"
		}
		return none + " of " + escaped(symbols.Printable(p.File.Path)) +
			": not called, inlined into the callers, or the command loaded another copy" + chosen
	}
	if len(s.Filter.PIDs) > 0 && !s.Filter.Follow {
		return none + ": not called, inlined into the callers, or called by children of the process, which --children counts, too"
	}
	return none + ": not called, or inlined into the callers"
}

// escaped makes a text fit for a format.
func escaped(text string) string { return strings.ReplaceAll(text, "%", "%%") }
