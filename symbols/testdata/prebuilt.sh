#!/bin/sh
# Builds the prebuilt libraries of this directory, which let tests run where no
# compiler is. Run it here, on x86-64 with gcc for x86 and for ARM64.
set -e
build() {
	"$@" -O1 -shared -fPIC -nostdlib -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 \
		-Wl,--build-id=0x0123456789abcdef -Wl,--version-script=versioned.map versioned.c
}
build gcc -o versioned-amd64.so
build gcc -m32 -o versioned-386.so
build aarch64-linux-gnu-gcc -o versioned-arm64.so

bare() {
	"$@" -O1 -shared -fPIC -nostdlib -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 \
		-Wl,--build-id=0x0123456789abcdef ifunc.c
}
bare gcc -o ifunc-amd64.so
bare gcc -m32 -o ifunc-386.so
bare aarch64-linux-gnu-gcc -o ifunc-arm64.so
