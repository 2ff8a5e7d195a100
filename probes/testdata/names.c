// Functions whose names look like patterns, and some with known instructions.
#define FUNCTION(name, code) \
	".globl \"" name "\"\n.type \"" name "\",@function\n\"" name "\": " code "\n.size \"" name "\", .-\"" name "\"\n"

#if defined(__x86_64__)
__asm__(".text\n"
	FUNCTION("operator*", "nop; ret")
	FUNCTION("foo[abi:cxx11]", "nop; ret")
	FUNCTION("plus+2", "nop; ret")
	FUNCTION("steps", "push %rbp; mov %rsp,%rbp; pop %rbp; ret")
	FUNCTION("nop5", ".byte 0x0f,0x1f,0x44,0,0; .byte 0x0f,0x1f,0x44,0,0; ret")
	FUNCTION("late", "push %rbp; vzeroupper; pop %rbp; ret")
	FUNCTION("vex1", "vzeroupper; ret")
	FUNCTION("vex2", "vzeroupper; ret"));
#endif

static __attribute__((used)) int twin(void) { return 2; } // and another in twin.c

int main(void) { return 0; }
