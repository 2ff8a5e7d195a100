package assets

import _ "embed"

//go:embed demo/demo_amd64.elf
var demoELF string

//go:embed empty/empty_amd64.elf
var emptyELF string
