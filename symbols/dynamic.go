package symbols

import (
	"debug/elf"
	"slices"
)

// dynamicTable finds the dynamic symbols by the dynamic segment, as the dynamic
// linker does. It has no table's length: that comes from the hash table.
func (im *image) dynamicTable() (*table, error) {
	tags, err := im.dynamicTags()
	if err != nil || tags[elf.DT_SYMTAB] == 0 || tags[elf.DT_STRTAB] == 0 {
		return nil, err
	}
	off, ok1 := im.fileOffset(tags[elf.DT_SYMTAB], 0)
	names, ok2 := im.fileOffset(tags[elf.DT_STRTAB], 0)
	if !ok1 || !ok2 {
		return nil, behindEnd("dynamic symbol table")
	}
	n, err := im.countByHash(tags)
	if err != nil {
		return nil, err
	}
	size := n * 16
	if im.is64 {
		size = n * 24
	}
	if !within(off, size, im.size) {
		return nil, behindEnd("dynamic symbol table")
	}
	text, err := im.text(names, tags[elf.DT_STRSZ], "dynamic string table")
	if err != nil {
		return nil, err
	}
	t, err := im.newTable(off, size, text)
	if err != nil {
		return nil, err
	}
	t.dynamic = true
	if o, ok := im.fileOffset(tags[elf.DT_VERSYM], 0); ok && within(o, t.n*2, im.size) {
		if t.versions, err = im.bytes(o, t.n*2, "table of symbol versions"); err != nil {
			return nil, err
		}
	}
	if o, ok := im.fileOffset(tags[elf.DT_VERDEF], 0); ok && o < im.size {
		b, err := im.bytes(o, min(im.size-o, maxNotes), "list of versions")
		if err != nil {
			return nil, err
		}
		t.defined = definitions(b, t)
	}
	return t, nil
}

// dynamicTags reads the dynamic segment, if there is one. Of a tag that it has more
// than once the last value stays.
func (im *image) dynamicTags() (map[elf.DynTag]uint64, error) {
	tags := make(map[elf.DynTag]uint64)
	err := im.eachTag(func(tag elf.DynTag, value uint64) { tags[tag] = value })
	if err != nil {
		return nil, err
	}
	return tags, nil
}

// eachTag goes through the dynamic segment.
func (im *image) eachTag(do func(tag elf.DynTag, value uint64)) error {
	at := slices.IndexFunc(im.segments, func(s segment) bool { return s.typ == elf.PT_DYNAMIC })
	if at < 0 {
		return nil
	}
	b, err := im.bytes(im.segments[at].off, min(im.segments[at].filesz, maxDynamic), "dynamic segment")
	if err != nil {
		return err
	}
	size := 8
	if im.is64 {
		size = 16
	}
	for ; len(b) >= size; b = b[size:] {
		var tag elf.DynTag
		var value uint64
		if im.is64 {
			tag, value = elf.DynTag(order.Uint64(b)), order.Uint64(b[8:])
		} else {
			tag, value = elf.DynTag(order.Uint32(b)), uint64(order.Uint32(b[4:]))
		}
		if tag == elf.DT_NULL {
			break
		}
		do(tag, value)
	}
	return nil
}

// countByHash is the number of dynamic symbols, from either hash table.
func (im *image) countByHash(tags map[elf.DynTag]uint64) (uint64, error) {
	if off, ok := im.fileOffset(tags[elf.DT_HASH], 0); ok && tags[elf.DT_HASH] != 0 {
		b, err := im.bytes(off, 8, "hash table")
		if err != nil {
			return 0, err
		}
		return uint64(order.Uint32(b[4:])), nil // as many chains as symbols
	}
	off, ok := im.fileOffset(tags[elf.DT_GNU_HASH], 0)
	if !ok || tags[elf.DT_GNU_HASH] == 0 {
		return 0, nil
	}
	h, err := im.bytes(off, 16, "hash table")
	if err != nil {
		return 0, err
	}
	buckets, first, bloom := uint64(order.Uint32(h)), uint64(order.Uint32(h[4:])), uint64(order.Uint32(h[8:]))
	word := uint64(4)
	if im.is64 {
		word = 8
	}
	at := off + 16 + bloom*word
	b, err := im.bytes(at, buckets*4, "hash table")
	if err != nil {
		return 0, err
	}
	last := uint64(0)
	for ; len(b) > 0; b = b[4:] {
		last = max(last, uint64(order.Uint32(b)))
	}
	if last < first {
		return first, nil // imports alone: no symbol is in a bucket
	}
	return im.endOfChain(at+buckets*4, first, last)
}

// endOfChain goes along the chain that holds the symbol last to its end, which
// is the end of the table; chains begins with that of the symbol first.
func (im *image) endOfChain(chains, first, last uint64) (uint64, error) {
	for {
		off := chains + (last-first)*4
		if !within(off, 4, im.size) {
			return 0, behindEnd("hash table")
		}
		b, err := im.bytes(off, min(chunk, (im.size-off)&^3), "hash table")
		if err != nil {
			return 0, err
		}
		for ; len(b) > 0; b = b[4:] {
			last++
			if b[0]&1 != 0 {
				return last, nil
			}
		}
	}
}

// library tells a shared library from a program: it has a name for others to link
// with (libc can be run all the same), or neither a loader nor the mark of a
// static program at no fixed address.
func (im *image) library(typ elf.Type) (bool, error) {
	if typ != elf.ET_DYN {
		return false, nil
	}
	tags, err := im.dynamicTags()
	if err != nil {
		return false, err
	}
	if _, named := tags[elf.DT_SONAME]; named {
		return true, nil
	}
	for _, s := range im.segments {
		if s.typ == elf.PT_INTERP {
			return false, nil
		}
	}
	return elf.DynFlag1(tags[elf.DT_FLAGS_1])&elf.DF_1_PIE == 0, nil
}
