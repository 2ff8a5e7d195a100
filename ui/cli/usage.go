package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"uprobetop/symbols"
	"uprobetop/ui/format"
)

// usage is an error of the command line.
func usage(text string, args ...any) error { return &exit{exitUsage, fmt.Errorf(text, args...)} }

// flagError says what is wrong with a flag, and what was meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &invalid):
		return usage("%s", invalidValue(invalid))
	case errors.As(err, &unknown):
		if err := mistyped(cmd, cmd.Flags().Args()); err != nil {
			return err
		}
		flag := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			flag = "-" + unknown.GetSpecifiedName()
		}
		if owners := ownersOf(cmd.Root(), flag); len(owners) > 0 {
			return usage("%s belongs to %s: see uprobetop %s --help", flag, format.List(owners), owners[0])
		}
	}
	return usage("%s: see %s --help", err, cmd.CommandPath())
}

func invalidValue(err *pflag.InvalidValueError) string {
	f := err.GetFlag()
	name := flagName(f)
	switch f.Value.Type() {
	case "duration":
		return fmt.Sprintf("%s wants a time such as 1s, and %q is none", name, err.GetValue())
	case "int":
		return fmt.Sprintf("%s wants a number, and %q is none", name, err.GetValue())
	case "bool":
		return fmt.Sprintf("%s wants true or false, and %q is neither", name, err.GetValue())
	}
	return fmt.Sprintf("%s: %s", name, err.Unwrap())
}

// once is a word that a flag takes once: of two, one would be left out in silence.
type once string

func (o *once) Type() string   { return "string" }
func (o *once) String() string { return string(*o) }

func (o *once) Set(text string) error {
	if *o != "" {
		return fmt.Errorf("it is given twice, with %q and %q: leave one of them out", string(*o), text)
	}
	*o = once(text)
	return nil
}

// flagName is a flag as people type it: -d, or --slow.
func flagName(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

// ownersOf is the commands that have a flag: -d or --duration.
func ownersOf(root *cobra.Command, flag string) (names []string) {
	for _, cmd := range root.Commands() {
		f := cmd.Flags().Lookup(strings.TrimLeft(flag, "-"))
		if len(flag) == 2 {
			f = cmd.Flags().ShorthandLookup(flag[1:])
		}
		if f != nil && cmd.IsAvailableCommand() {
			names = append(names, cmd.Name())
		}
	}
	return names
}

// mistyped is an error if the first argument of the screen is nothing that could be
// a target, and near to a command's name.
func mistyped(cmd *cobra.Command, args []string) error {
	if cmd.HasParent() || len(args) == 0 || args[0] == "" || namesSomebody(cmd) {
		return nil
	}
	near := cmd.SuggestionsFor(args[0])
	if len(near) == 0 || isPath(args[0]) || exists(args[0]) || len(symbols.Libraries(args[0])) > 0 {
		return nil
	}
	if _, err := exec.LookPath(args[0]); err == nil {
		return nil
	}
	return usage("there is no command, library or program %q: did you mean %s?", args[0], near[0])
}

// runsNothing is an error if the screen is given a command after --.
func runsNothing(cmd *cobra.Command, args []string) error {
	if at := cmd.ArgsLenAtDash(); at < 0 || at == len(args) {
		return nil
	}
	return usage("only stat runs a command: uprobetop stat %s", shellLine(os.Args[1:]))
}

// shellLine is words as a shell reads them.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\$&|;()<>*?[]#~`!{}") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted[i] = w
	}
	return strings.Join(quoted, " ")
}
