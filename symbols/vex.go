package symbols

import "bytes"

// vectorInstruction is the length of an x86-64 instruction that has a VEX or EVEX
// prefix (Intel SDM, volume 2, 2.3 and 2.7), for which x86asm is wrong: is tells
// whether code begins with one, n is 0 if its length is not known.
func vectorInstruction(code []byte) (n uint64, is bool) {
	at := 0
	for at < len(code) && bytes.IndexByte([]byte{0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67}, code[at]) >= 0 {
		at++
	}
	if at >= len(code) {
		return 0, false
	}
	var prefix, opcodes int // bytes of the prefix; which map of opcodes
	need := func(i int) byte {
		if at+i < len(code) {
			return code[at+i]
		}
		return 0
	}
	switch code[at] {
	case 0xc5:
		prefix, opcodes = 2, 1
	case 0xc4:
		prefix, opcodes = 3, int(need(1)&0x1f)
		if opcodes > 3 {
			return 0, true
		}
	case 0x62:
		prefix, opcodes = 4, int(need(1)&0x07)
	default:
		return 0, false
	}
	if at+prefix+2 > len(code) && !(opcodes == 1 && need(prefix) == 0x77) {
		return 0, true
	}
	opcode := need(prefix)
	at += prefix + 1
	immediate := 0
	switch opcodes {
	case 1:
		if opcode == 0x77 { // vzeroupper, vzeroall
			return uint64(at), true
		}
		if opcode >= 0x70 && opcode <= 0x73 || opcode == 0xc2 || opcode >= 0xc4 && opcode <= 0xc6 {
			immediate = 1
		}
	case 2, 5, 6:
	case 3:
		immediate = 1
	default: // none, or those of APX
		return 0, true
	}
	at += operand(code[at:]) + immediate
	if at > len(code) {
		return 0, true
	}
	return uint64(at), true
}

// operand is how many bytes a ModRM byte takes, with what belongs to it.
func operand(code []byte) int {
	mod, rm := code[0]>>6, code[0]&7
	n := 1
	if mod == 3 {
		return n
	}
	wide := mod == 2 || mod == 0 && rm == 5
	if rm == 4 {
		n++
		if len(code) > 1 && mod == 0 && code[1]&7 == 5 {
			wide = true
		}
	}
	switch {
	case wide:
		n += 4
	case mod == 1:
		n++
	}
	return n
}
