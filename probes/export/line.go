package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
)

// writeLine writes one object as one line of JSON that a terminal can show.
func writeLine(w io.Writer, o any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(o); err != nil {
		return fmt.Errorf("cannot be written as JSON: %w", err)
	}
	_, err := w.Write(inert(b.Bytes()))
	return err
}

// inert escapes the characters that JSON lets stand and that some terminals obey:
// U+007F to U+009F, and those that turn the direction of text. They can only be in
// strings.
func inert(line []byte) []byte {
	obeyed := func(r rune) bool { return r >= 0x7f && r <= 0xffff && unicode.In(r, unicode.Cc, unicode.Cf) }
	if !bytes.ContainsFunc(line, obeyed) {
		return line
	}
	var b bytes.Buffer
	for _, r := range string(line) {
		if obeyed(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}
