package assets

import _ "embed"

//go:embed demo/demo_arm64.elf
var demoELF string
