package assets

import _ "embed"

//go:embed demo/demo_arm64.elf
var demoELF string

//go:embed empty/empty_arm64.elf
var emptyELF string
