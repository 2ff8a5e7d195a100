package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"uprobetop/probes"
	"uprobetop/probes/export"
	"uprobetop/symbols"
	"uprobetop/ui/format"
)

type listFlags struct {
	targetFlags
	output string
}

func newList(s Streams) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list [flags] [TARGET] [PATTERN]",
		Short: "what can be probed, and what cannot and why",
		Long: `list prints the functions of a file, or with -p of the files of a process. It needs
no rights beyond reading them.

PATTERN chooses among them. With *, ? or [a-z] it is a glob of the whole name, or
of the name without its parameters and result, and * stands for colons, too; quote
it for the shell. Any other is a part of a name, and an exact name comes first. It is held
against demangled names, against names as they stand in the symbol table, and
against all aliases; libc:PATTERN chooses a file of the process as well.

PROBE is ok, count where calls can be counted and not timed, usdt for a usdt probe,
which is counted, or no; the reason stands behind the name. CLASS is what a hit costs on
this kernel: a breakpoint on an instruction that is stepped takes about three times as
long as on one that is emulated, and on a nop that becomes a call (nop5) a fourth of that.

Of the versions of a function the default comes first: that is the one which a name
means. The name of an IFUNC, such as memcpy, leads to the variant that running
processes use, or that of -p. usdt:PATTERN chooses usdt probes alone, by name or
provider:name; usdt: is all of them.`,
		Example: `  uprobetop list /usr/bin/node 'v8::Isolate::*'
  uprobetop list -p 4121 libc 'pthread_cond_*'
  uprobetop list -o json ./server handle`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return f.run(s, args) },
	}
	f.registerNames(cmd)
	f.sources.register(cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "`FORMAT` is table, or json: one object a function, one a line")
	f.given = cmd.Flags().Changed
	return cmd
}

func (f *listFlags) run(s Streams, args []string) error {
	if f.output != "table" && f.output != "json" {
		return usage("there is no output format %q: use table or json", f.output)
	}
	args = slices.Clone(args)
	for i, a := range args {
		if hasSpecPrefix(a) && strings.HasPrefix(a, "usdt:") && strings.HasSuffix(a, ":") {
			args[i] += "*"
		}
	}
	target, specs, err := f.open(s, args, nil)
	if err != nil {
		return err
	}
	defer target.Close()
	var pattern probes.Spec
	switch len(specs) {
	case 0:
	case 1:
		pattern = specs[0]
	default:
		return usage("list takes one pattern, and there are %d: quote it for the shell", len(specs))
	}
	all, err := target.List(pattern)
	if wrong := target.CheckTwins(); wrong != nil {
		return failed(wrong)
	}
	if err != nil {
		passedOver(s, err)
		return &exit{exitNothing, err}
	}
	if led := all[0].Led; led != "" {
		fmt.Fprintf(s.Err, "uprobetop: %s\n", led)
	}
	w := bufio.NewWriterSize(s.Out, 64<<10)
	if f.output == "json" {
		err = export.List(w, all)
	} else {
		err = listTable(w, all, columns(s.Out))
	}
	if err != nil {
		return err
	}
	return w.Flush()
}

// columns is the width of a terminal, or 0 if w is none.
func columns(w io.Writer) int {
	if file, ok := w.(*os.File); ok && term.IsTerminal(file.Fd()) {
		if width, _, err := term.GetSize(file.Fd()); err == nil {
			return width
		}
	}
	return 0
}

// listTable writes a block a file: what it is, then one line a function, cut to
// width if that is above 0.
func listTable(w *bufio.Writer, all []probes.Listing, width int) error {
	for i := range all {
		l := &all[i]
		if i > 0 {
			fmt.Fprintln(w)
		}
		for _, line := range header(l) {
			fmt.Fprintln(w, line)
		}
		fmt.Fprintln(w)
		var address symbols.Addr
		var size uint64
		for _, fn := range l.Functions {
			address, size = max(address, fn.Addr), max(size, fn.Size)
		}
		r := listRows{Listing: l, width: width}
		r.wide = []int{max(len("ADDRESS"), len(fmt.Sprintf("%#x", uint64(address)))), max(len("SIZE"), len(fmt.Sprint(size))), -len("PROBE"), -len("emulated")}
		fmt.Fprintf(w, "%*s  %*s  PROBE  CLASS     FUNCTION\n", r.wide[0], "ADDRESS", r.wide[1], "SIZE")
		if err := r.write(w); err != nil {
			return err
		}
	}
	return nil
}

// listRows writes the functions of a listing.
type listRows struct {
	*probes.Listing
	wide  []int // of the columns before the name
	width int   // of the terminal, or 0
}

// write makes some thousand rows at a time, on all CPUs.
func (r *listRows) write(w io.Writer) error {
	const each = 2048
	parts := make([][]byte, runtime.GOMAXPROCS(0))
	for some := range slices.Chunk(r.Functions, each*len(parts)) {
		var wg sync.WaitGroup
		for i := range parts {
			wg.Go(func() {
				parts[i] = parts[i][:0]
				for j := i * each; j < min((i+1)*each, len(some)); j++ {
					parts[i] = r.append(parts[i], &some[j])
				}
			})
		}
		wg.Wait()
		for _, part := range parts {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// append appends the row of a function. There can be a hundred thousand, for which fmt
// takes a third of the time of a list.
func (r *listRows) append(to []byte, fn *symbols.Listed) []byte {
	limit := r.Limits[fn.Function]
	var room [24]byte
	to = appendCell(to, r.wide[0], appendAddress(room[:0], fn))
	to = appendCell(to, r.wide[1], appendSize(room[:0], fn))
	to = appendCell(to, r.wide[2], append(room[:0], able(fn, limit)...))
	to = appendCell(to, r.wide[3], append(room[:0], listClass(r.File, fn, limit)...))
	from := len(to)
	to = append(to, fn.Versioned()...)
	name := len(to)
	to = appendNote(to, r.File, fn, limit)
	if r.width > 0 {
		room := r.width - r.wide[0] - r.wide[1] - len("      PROBE  CLASS     ")
		cutName, note := cut(string(to[from:name]), strings.TrimPrefix(string(to[name:]), "  "), room)
		if to = append(to[:from], cutName...); note != "" {
			to = append(append(to, "  "...), note...)
		}
	}
	return append(to, '\n')
}

const none = "–"

// appendAddress appends where a function is, if that is in the file.
func appendAddress(to []byte, fn *symbols.Listed) []byte {
	if fn.Place == symbols.Imported || fn.Place == symbols.InVDSO {
		return append(to, none...)
	}
	return strconv.AppendUint(append(to, "0x"...), uint64(fn.Addr), 16)
}

func appendSize(to []byte, fn *symbols.Listed) []byte {
	if fn.Size == 0 {
		return append(to, none...)
	}
	return strconv.AppendUint(to, fn.Size, 10)
}

// listClass is the class of what can be probed.
func listClass(f *symbols.File, fn *symbols.Listed, limit probes.Limit) string {
	if limit.Ability == probes.Cannot {
		return none
	}
	return cmp.Or(probes.ClassOf(f, fn.Function).String(), none)
}

const spaces = "                                "

// appendCell appends a cell of up to 32 letters and two spaces: to the right of a width, to
// the left of a negative one.
func appendCell(to []byte, width int, cell []byte) []byte {
	pad := spaces[:max(0, max(width, -width)-utf8.RuneCount(cell))]
	if width > 0 {
		to = append(append(to, pad...), cell...)
	} else {
		to = append(append(to, cell...), pad...)
	}
	return append(to, "  "...)
}

// header is what stands above the functions of a file.
func header(l *probes.Listing) []string {
	lines := append([]string{headline(l)}, l.File.Notes...)
	if l.File.Stripped && l.Own() == 0 && !l.File.Stub() {
		lines = append(lines, probes.NoFunctions)
	}
	if l.Runtime != "" {
		lines = append(lines, l.Runtime)
	}
	if l.Asks != "" {
		lines = append(lines, "-r asks first: "+l.Asks)
	}
	return lines
}

// headline is what a file is, in one line.
func headline(l *probes.Listing) string {
	parts := []string{symbols.Printable(l.File.Path)}
	if l.File.BuildID != "" {
		parts = append(parts, "build id "+l.File.BuildID)
	}
	if l.File.Stripped {
		parts = append(parts, "stripped to its exports")
	} else if from := l.File.Source; from != "" && from != symbols.OwnTable {
		parts = append(parts, "names from "+from)
	}
	if badge := l.File.Badge(); badge != "" {
		parts = append(parts, badge)
	}
	imported, markers := l.Imported(), len(l.File.Markers())
	parts = append(parts, format.Things(l.Own(), "function"))
	if markers > 0 {
		parts = append(parts, format.Things(markers, "usdt probe"))
	}
	parts = append(parts, format.Count(uint64(l.Limited(probes.Cannot)))+" cannot be probed")
	if n := l.Limited(probes.Counts); n > 0 {
		parts = append(parts, format.Count(uint64(n))+" can only be counted")
	}
	if imported > 0 {
		parts = append(parts, format.Count(uint64(imported))+" imported")
	}
	if n := len(l.Functions); n < len(l.File.Functions) {
		parts = append(parts, format.Count(uint64(n))+" listed")
	}
	return strings.Join(parts, ", ")
}

// able is the word for what can be measured.
func able(fn *symbols.Listed, limit probes.Limit) string {
	if fn.Place == symbols.Marker && limit.Ability == probes.Counts {
		return probes.USDT.String()
	}
	return limit.Ability.String()
}

// appendNote appends two spaces and what stands behind a name, if there is anything.
func appendNote(to []byte, f *symbols.File, fn *symbols.Listed, limit probes.Limit) []byte {
	before := "  ("
	add := func(words ...string) {
		to = append(to, before...)
		for _, w := range words {
			to = append(to, w...)
		}
		before = "; "
	}
	if fn.Place == symbols.Marker && limit.Ability == probes.Counts {
		for _, note := range probes.MarkerNotes(f, fn.Function) {
			add(note)
		}
		limit.Ability = probes.Times
	}
	if fn.Old() {
		add("old version")
	}
	if of := fn.CloneOf(f); of != "" {
		add("clone of ", of, " made by the compiler")
	}
	for i, other := range fn.Other {
		if i == 0 {
			add("also ", other)
		} else {
			to = append(append(to, ", "...), other...)
		}
	}
	if fn.Chosen {
		add(probes.ChosenNote)
	}
	switch limit.Ability {
	case probes.Counts:
		add("counts only: ", limit.Reason)
	case probes.Cannot:
		add(limit.Finding.String())
	}
	if before == "; " {
		to = append(to, ')')
	}
	return to
}

// cut makes a name and the note behind it fit into room: the note may have what
// the name leaves, or half.
func cut(name, note string, room int) (string, string) {
	if note == "" {
		return ansi.Truncate(name, max(room, 1), "…"), ""
	}
	half := max(room/2, room-2-ansi.StringWidth(note))
	name = ansi.Truncate(name, max(half, 1), "…")
	return name, ansi.Truncate(note, max(room-2-ansi.StringWidth(name), 1), "…")
}
