package assets

import _ "embed"

//go:embed demo/demo_amd64.elf
var demoELF string
