package demangle

// mark is a place between two parts of the outermost nested name. The names of a
// file come in order of address or alphabet: one mostly begins like that before
// it, and is read on from the last mark that both have.
type mark struct {
	pos, out, side, subs int
	parts                int
	name                 nameInfo
	lastCtx              int32
}

const maxMarks = 12

// mark notes that parts of n are read, and that more follow. What was read does
// not depend on more than the next byte.
func (c *cxx) mark(n *nameInfo, parts int) {
	if len(c.marks) == maxMarks {
		return
	}
	c.marks = append(c.marks, mark{
		pos: c.pos, out: len(c.out), side: len(c.side), subs: len(c.subs),
		parts: parts, name: *n, lastCtx: c.lastCtx,
	})
	c.marked = append(c.marked, c.in[len(c.marked):c.pos+1]...)
}

// goBack keeps of the last name what was written up to the last mark that holds
// for c.in too.
func (c *cxx) goBack() {
	i, m := len(c.marks), mark{pos: -1}
	for ; i > 0; i-- {
		end := c.marks[i-1].pos + 1
		if end <= len(c.in) && string(c.marked[:end]) == c.in[:end] {
			m = c.marks[i-1]
			break
		}
	}
	c.marks, c.marked, c.resume = c.marks[:i], c.marked[:m.pos+1], i > 0
	c.out, c.side, c.subs = c.out[:m.out], c.side[:m.side], c.subs[:m.subs]
}

// resumeAt goes to the last mark, and says how many parts of n are before it.
func (c *cxx) resumeAt(n *nameInfo) (parts int) {
	m := &c.marks[len(c.marks)-1]
	c.pos, c.lastCtx = m.pos, m.lastCtx
	keep := n.keep
	*n = m.name
	n.keep = keep
	return m.parts
}
