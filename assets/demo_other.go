//go:build !amd64 && !arm64

package assets

const (
	demoELF  = ""
	emptyELF = ""
)
