package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"uprobetop/probes"
	"uprobetop/symbols"
)

// sourceFlags are the flags that say where the names of stripped files come from.
type sourceFlags struct {
	twins      []string
	debuginfod bool
}

func (f *sourceFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.twins, "symbols", nil, "take names of a stripped file from `FILE`, its build before that or its debug file, told by the build id (can be repeated)")
	cmd.Flags().BoolVar(&f.debuginfod, "debuginfod", false, "fetch names of stripped files from the servers in DEBUGINFOD_URLS; without it none is asked")
}

// read takes the twins from the flags of a command that registered them. Servers are
// not asked for a completion.
func (f *sourceFlags) read(cmd *cobra.Command) {
	f.twins, _ = cmd.Flags().GetStringArray("symbols") // an error would say that there is no such flag
}

// open makes sources of the flags. Its twins stay open as long as the program runs.
func (f *sourceFlags) open(s Streams, several bool) (*symbols.Sources, error) {
	names := &symbols.Sources{IDsOnly: several}
	for _, path := range f.twins {
		twin, err := symbols.OpenTwin(path)
		if err != nil {
			return nil, failed(err)
		}
		names.Twins = append(names.Twins, twin)
	}
	if f.debuginfod {
		var err error
		if names.Debuginfod, err = symbols.NewDebuginfod(os.Getenv); err != nil {
			return nil, failed(err)
		}
		names.Debuginfod.Say = func(text string) { fmt.Fprintf(s.Err, "uprobetop: %s\n", text) }
	}
	return names, nil
}

// passedOver tells why names are not there that were looked for.
func passedOver(s Streams, err error) {
	for _, note := range probes.NamesPassedOver(err) {
		fmt.Fprintf(s.Err, "uprobetop: %s\n", note)
	}
}
