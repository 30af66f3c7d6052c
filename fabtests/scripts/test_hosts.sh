#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_hosts.sh: processes that the provider must not disturb. The same program
# (functional/process/host.c) runs under each sanitizer and valgrind, and as a
# library in Python, Go and Java. The provider is the one that FI_PROVIDER_PATH
# names: a release, which knows of none of them.

set -u
export LC_ALL=C
ME=${0##*/}
TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
readonly HOST=$TOP/fabtests/functional/process/host.c

usage()
{
	cat <<-EOT
	Usage: FI_PROVIDER_PATH=DIR $ME [OPTION] [PROVIDER]

	  -t TEST      only this one, as FT_ONLY says, too
	  --packages   the packages that it needs
	EOT
}

if [ "${1-}" = --packages ]; then
	echo gcc g++ clang libclang-rt-dev valgrind python3 golang-go \
		default-jdk-headless
	exit
fi
# shellcheck source=fabtests/scripts/testlib.sh
. "$TOP/fabtests/scripts/testlib.sh"
test_options "$@"
[ "$PROVIDER" != 'tcp;ofi_mrrc' ] || PROVIDER='tcp;ofi_rxm;ofi_mrrc'

# sent COMMAND...: ends well, and all that it sent arrived
sent()
{
	local rc

	timeout 120 "$@" >"$DIR/log" 2>&1
	rc=$?
	[ $rc -eq 0 ] && grep -q "^host: all sent" "$DIR/log" && return
	sed 's/^/  | /' "$DIR/log" | head -n 60
	fail "$1: status $rc"
}

# program NAME COMPILER OPTION...: $DIR/NAME
program()
{
	local name=$1

	shift
	"$@" -O1 -g -Wall -Wextra -o "$DIR/$name" "$HOST" -lfabric ||
		fail "$name cannot be built"
}

# library: $DIR/libhost.so
library()
{
	gcc -O1 -g -fPIC -shared -DHOST_LIBRARY -o "$DIR/libhost.so" "$HOST" \
		-lfabric || fail "libhost.so cannot be built"
}

# ThreadSanitizer wants mappings where kernels do not spread them so widely.
flat=()
! setarch -R true 2>/dev/null || flat=(setarch -R)

test_plain()
{
	program plain gcc && sent "$DIR/plain" "$PROVIDER"
}

test_asan()
{
	program asan gcc -fsanitize=address,undefined &&
		sent "$DIR/asan" "$PROVIDER"
}

# tsan COMPILER
tsan()
{
	program tsan "$1" -fsanitize=thread &&
		TSAN_OPTIONS=ignore_noninstrumented_modules=1 \
			sent "${flat[@]}" "$DIR/tsan" "$PROVIDER"
}

test_tsan_gcc()
{
	tsan gcc
}

test_tsan_clang()
{
	tsan clang
}

# libnl, which libfabric links, has something that is not set.
test_msan()
{
	program msan clang -fsanitize=memory -fsanitize-recover=memory &&
		MSAN_OPTIONS=halt_on_error=0:exitcode=0 \
			sent "$DIR/msan" "$PROVIDER" || return
	! grep "^    #[0-9]* .* in \(host\|fi\)_" "$DIR/log"
}

test_valgrind()
{
	program plain gcc && sent valgrind -q --error-exitcode=9 \
		--suppressions="$TOP/fabtests/suppressions/valgrind.supp" \
		"$DIR/plain" "$PROVIDER"
}

test_python()
{
	library && sent python3 -c "import ctypes, sys
sys.exit(ctypes.CDLL('$DIR/libhost.so').host_run(b'$PROVIDER'))"
}

# The Go runtime interrupts threads by signals, and allocates their stacks.
test_go()
{
	library || return
	cat >"$DIR/host.go" <<-EOT
	package main

	// #cgo LDFLAGS: -L$DIR -lhost -Wl,-rpath,$DIR
	// int host_run(const char *provider);
	import "C"
	import ("os"; "runtime")

	func main() {
		done := make(chan C.int)
		go func() { done <- C.host_run(C.CString("$PROVIDER")) }()
		for {
			select {
			case wrong := <-done:
				os.Exit(int(wrong))
			default:
				runtime.GC()
				_ = make([]byte, 1<<20)
			}
		}
	}
	EOT
	GOCACHE=$DIR/go GO111MODULE=off go build -o "$DIR/host_go" \
		"$DIR/host.go" || { fail "host.go cannot be built"; return; }
	sent "$DIR/host_go"
}

# Its heap is mapped and unmapped by collections.
test_java()
{
	local home

	library || return
	home=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
	cat >"$DIR/Host.java" <<-EOT
	public class Host {
		static native int run(String provider);
		static volatile boolean done;
		public static void main(String[] args) throws Exception {
			System.load("$DIR/libhostjni.so");
			Thread other = new Thread(() -> {
				while (!done) {
					byte[] junk = new byte[1 << 20];
					System.gc();
				}
			});
			other.start();
			int wrong = run("$PROVIDER");
			done = true;
			other.join();
			System.exit(wrong);
		}
	}
	EOT
	cat >"$DIR/jni.c" <<-EOT
	#include <jni.h>
	int host_run(const char *provider);
	JNIEXPORT jint JNICALL Java_Host_run(JNIEnv *env, jclass cls, jstring name)
	{
		return host_run((*env)->GetStringUTFChars(env, name, NULL));
	}
	EOT
	if ! gcc -fPIC -shared -I"$home/include" -I"$home/include/linux" \
		-o "$DIR/libhostjni.so" "$DIR/jni.c" -L"$DIR" -lhost \
		-Wl,-rpath,"$DIR" || ! javac -d "$DIR" "$DIR/Host.java"; then
		fail "Host.java cannot be built"
		return
	fi
	sent java -Xmx64m -cp "$DIR" Host
}

run_tests plain asan tsan_gcc tsan_clang msan valgrind python go java
