"""The tree that every form of a package holds: bin, lib and share of an installed build with the libraries of the distribution that it needs.
It may lie anywhere: its programs and libraries look for each other by their own place."""
import argparse
import os
import pathlib
import shutil
import subprocess

from elf import Elf

# Libraries of the machine where the package is used. Those of C++ belong to them, as those of Debian's g++ 12 ask for glibc 2.35 and 2.36.
OF_GLIBC = ("libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "libresolv.so", "ld-linux")
OF_COMPILER = ("libgcc_s.so", "libstdc++.so")
OF_CUDA = ("libcublas", "libcudart", "libcuda.so", "libnccl")
# Libraries that Debian links its libraries to and that nothing here calls: oneDNN's for GPUs of OpenCL, Gloo's for Redis and InfiniBand. In
# their places lie libraries of the same names and symbols that end the process; without the names ld.so would not open oneDNN.
STUBBED = ("libOpenCL.so", "libhiredis.so", "libibverbs.so")
# What would ask for a newer machine than the tag names: the version before it does the same (it is not stopped by pthread_cancel).
WAIT = "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"
NEWER_THAN_NEEDED = [(WAIT, "GLIBCXX_3.4.30", "GLIBCXX_3.4.11", True),
                     # std::random_device calls it only on a processor without rdseed and rdrand.
                     ("arc4random", "GLIBC_2.36", "GLIBC_2.34", False)]


class PackageError(Exception):
    """What is wrong, and the exit code for it (sysexits)."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Arguments(argparse.ArgumentParser):
    """A parser whose complaints end with the exit code of sysexits."""

    def error(self, message):
        self.exit(64, f"{self.prog}: {message}; see --help\n")


def run(*command, **options):
    """The command's stdout. Fails with what it says on stderr."""
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if result.returncode != 0:
        raise PackageError(70, f"{command[0]} failed with {result.returncode}: {' '.join(map(str, command))}\n{result.stderr.strip()}")
    return result.stdout


class Build:
    """A build folder: what CMake noted there."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        cache = self.folder / "CMakeCache.txt"
        if not cache.exists():
            raise PackageError(66, f"{folder} is no build folder: it holds no CMakeCache.txt; build it: cmake --preset release && "
                                   "cmake --build --preset release --target apps")
        lines = (line.strip() for line in cache.read_text().splitlines())
        self.cache = {name.split(":")[0]: value for name, _, value in (line.partition("=") for line in lines if line[:1].isalpha())}
        self.version = self.cache["CMAKE_PROJECT_VERSION"]
        self.compiler = self.cache["CMAKE_CXX_COMPILER"]

    def needs(self, *names):
        for name in names:
            if not (self.folder / name).exists():
                raise PackageError(66, f"{self.folder} holds no {name}; build it: cmake --build {self.folder}")


def install(build, top, component):
    """What `cmake --install` brings, each library under the name by which others ask for it, without symbols for debuggers."""
    build.needs("bin/megalith")
    run("cmake", "--install", build.folder, "--prefix", top, "--component", component)
    for path in sorted((top / "lib").iterdir()):
        name = path.name if path.is_symlink() else Elf(path).soname or path.name
        if path.is_symlink():
            path.unlink()
        elif name != path.name:
            path.rename(path.with_name(name))
    strip(elf_files(top))


def strip(paths):
    run("strip", "--strip-unneeded", *paths)


def elf_files(top):
    """Programs and libraries of the tree."""
    paths = [path for folder in ("bin", "lib") for path in sorted((top / folder).glob("*"))]
    return [path for path in paths if path.is_file() and Elf.is_elf(path)]


def begins_with(name, names):
    return name.startswith(tuple(names))


def places_of(path, top):
    """Where the dynamic linker finds each library that a file needs."""
    result = subprocess.run(["ldd", path], capture_output=True, text=True, check=False,
                            env={**os.environ, "LC_ALL": "C", "LD_LIBRARY_PATH": str(top / "lib")})
    words = (line.split() for line in result.stdout.splitlines())
    return {word[0]: word[2] for word in words if len(word) > 2 and word[1] == "=>" and word[2].startswith("/")}


def add_libraries(build, top, of_machine):
    """Copies what the tree's files need, except the libraries `of_machine`, into lib. Returns the origins: name -> path on this machine."""
    origins, files = {}, elf_files(top)
    while files:
        path = files.pop()
        places = places_of(path, top)
        for name in Elf(path).needed:
            copy = top / "lib" / name
            if copy.exists() or begins_with(name, of_machine):
                continue
            if name not in places:
                raise PackageError(66, f"{path.name} needs {name}, which this machine lacks; install it as tools/setup does")
            if begins_with(name, STUBBED):
                make_stub(build, top, name, places[name])
            else:
                shutil.copyfile(places[name], copy)
                strip([copy])
                origins[name] = places[name]
            files.append(copy)
    for path in elf_files(top):
        for change in NEWER_THAN_NEEDED:
            Elf(path).retarget(*change)
        path.chmod(0o755 if path.parent.name == "bin" else 0o644)
    return origins


def stubbed_symbols(top, real):
    """version (or None) -> names that the tree's files want of the library."""
    defined = {symbol.name for symbol in Elf(real).symbols if symbol.defined}
    wanted = {}
    for path in elf_files(top):
        for symbol in Elf(path).symbols:
            if not symbol.defined and symbol.name in defined:
                wanted.setdefault(symbol.version, set()).add(symbol.name)
    return wanted


def make_stub(build, top, name, real):
    """A library of this name that defines what the tree's files want of the real one; a call of it ends the process with a message."""
    wanted = stubbed_symbols(top, real)
    if None in wanted and len(wanted) > 1:
        raise PackageError(70, f"{name}: some of its symbols have versions and some have none")
    code = ["#include <stdlib.h>", "#include <unistd.h>",
            f'void stub(void) {{ if (write(2, "{name}: Megalith does not use it\\n", {len(name) + 27})) {{}} abort(); }}']
    script = []
    for version, names in sorted(wanted.items(), key=lambda item: item[0] or ""):
        code += [f'void {symbol}(void) __attribute__((alias("stub")));' for symbol in sorted(names)]
        script.append(f"{version or ''} {{ global: {' '.join(symbol + ';' for symbol in sorted(names))} local: *; }};")
    source, versions = top / "stub.c", top / "stub.map"
    source.write_text("\n".join(code) + "\n")
    versions.write_text("\n".join(script).replace(" local: *; }", " }", len(script) - 1) + "\n")
    run(build.compiler, "-x", "c", "-shared", "-fPIC", "-Os", "-Wl,--build-id=none", f"-Wl,-soname,{name}", f"-Wl,--version-script,{versions}",
        "-o", top / "lib" / name, source)
    strip([top / "lib" / name])
    source.unlink()
    versions.unlink()
