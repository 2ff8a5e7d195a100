package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

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
which is counted, or no; the reason stands behind the name. usdt:PATTERN chooses usdt
probes alone, by name or provider:name; usdt: is all of them.

Of the versions of a function the default comes first: that is the one which a name
means.`,
		Example: `  uprobetop list /usr/bin/node 'v8::Isolate::*'
  uprobetop list -p 4121 libc 'pthread_cond_*'
  uprobetop list -o json ./server handle`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return f.run(s, args) },
	}
	f.registerNames(cmd)
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
	if err != nil {
		return &exit{exitNothing, err}
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
		fmt.Fprintln(w, headline(l))
		if l.Asks != "" {
			fmt.Fprintln(w, "-r asks first: "+l.Asks)
		}
		fmt.Fprintln(w)
		var address symbols.Addr
		var size uint64
		for _, fn := range l.Functions {
			address, size = max(address, fn.Addr), max(size, fn.Size)
		}
		wide := [2]int{max(len("ADDRESS"), len(hex(address))), max(len("SIZE"), len(fmt.Sprint(size)))}
		fmt.Fprintf(w, "%*s  %*s  PROBE  FUNCTION\n", wide[0], "ADDRESS", wide[1], "SIZE")
		room := width - wide[0] - wide[1] - len("      PROBE  ")
		for j := range l.Functions {
			fn := &l.Functions[j]
			limit := l.Limits[fn.Function]
			bytes := "–"
			if fn.Size > 0 {
				bytes = fmt.Sprint(fn.Size)
			}
			name, note := fn.Versioned(), listNote(l.File, fn, limit)
			if width > 0 {
				name, note = cut(name, note, room)
			}
			if note != "" {
				name += "  " + note
			}
			if _, err := fmt.Fprintf(w, "%*s  %*s  %-5s  %s\n", wide[0], hex(fn.Addr), wide[1], bytes, able(fn, limit), name); err != nil {
				return err
			}
		}
	}
	return nil
}

func hex(a symbols.Addr) string { return fmt.Sprintf("%#x", uint64(a)) }

// headline is what a file is, in one line.
func headline(l *probes.Listing) string {
	parts := []string{symbols.Printable(l.File.Path)}
	if l.File.BuildID != "" {
		parts = append(parts, "build id "+l.File.BuildID)
	}
	markers := len(l.File.Markers())
	parts = append(parts, format.Things(len(l.File.Functions)-markers, "function"))
	if markers > 0 {
		parts = append(parts, format.Things(markers, "usdt probe"))
	}
	parts = append(parts, format.Count(uint64(l.Limited(probes.Cannot)))+" cannot be probed")
	if n := l.Limited(probes.Counts); n > 0 {
		parts = append(parts, format.Count(uint64(n))+" can only be counted")
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

// listNote is what stands behind a name.
func listNote(file *symbols.File, fn *symbols.Listed, limit probes.Limit) string {
	var notes []string
	if fn.Place == symbols.Marker && limit.Ability == probes.Counts {
		notes = append(notes, probes.MarkerNotes(file, fn.Function)...)
		limit.Ability = probes.Times
	}
	if fn.Old() {
		notes = append(notes, "old version")
	}
	if len(fn.Other) > 0 {
		notes = append(notes, "also "+strings.Join(fn.Other, ", "))
	}
	switch limit.Ability {
	case probes.Counts:
		notes = append(notes, "counts only: "+limit.Reason)
	case probes.Cannot:
		notes = append(notes, limit.Finding.String())
	}
	if len(notes) == 0 {
		return ""
	}
	return "(" + strings.Join(notes, "; ") + ")"
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
