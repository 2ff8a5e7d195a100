package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"uprobetop/probes"
	"uprobetop/probes/export"
	"uprobetop/symbols"
)

func newDoctor(s Streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "what this kernel can do, what is missing, how to get it",
		Long: `doctor looks at everything that probing depends on: the rights of this user, what
the kernel can do, found by trying, and its settings. At the end it puts a probe on
itself and counts. It touches no other process and leaves nothing behind.

The first line is the verdict. The exit status is 0 if probes can be placed here,
and 1 if not.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("doctor takes no arguments, and %q is one", args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			if output != "table" && output != "json" {
				return usage("there is no output format %q: use table or json", output)
			}
			d := probes.Diagnose()
			write := doctorTable
			if output == "json" {
				write = export.Diagnosis
			}
			if err := write(s.Out, d); err != nil {
				return err
			}
			if !d.Ready {
				return &exit{code: exitFailed} // all is said
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "`FORMAT` is table, or json: one object")
	return cmd
}

func doctorTable(w io.Writer, d probes.Diagnosis) error {
	fmt.Fprintf(w, "%s\n\n", symbols.Printable(d.Verdict))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STATUS\tCHECK\tFOUND\tMEANING")
	for _, e := range d.Checks {
		means := e.Means
		if e.Remedy != "" {
			means += ": " + e.Remedy
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", e.Status, e.Name, symbols.Printable(e.Found), means)
	}
	return t.Flush()
}
