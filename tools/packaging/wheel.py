"""A wheel: a zip of the tree, of a launcher for each program, and of what pip reads."""
import base64
import hashlib
import time

from deflate import write_zip

LAUNCHER = """#!/bin/sh
# Runs the program of this name in lib/megalith beside this folder.
self=$0
[ ! -h "$self" ] || self=$(readlink -f "$self")
case $self in */*) ;; *) self=./$self ;; esac
exec "${self%/*}/../lib/megalith/bin/${self##*/}" "$@"
"""

MAIN = '''"""python -m megalith: the program megalith of this environment."""
import importlib.metadata
import os
import sys

program = next(str(path.locate()) for path in importlib.metadata.files("megalith") if path.parts[-3:] == ("megalith", "bin", "megalith"))
os.execv(program, [program, *sys.argv[1:]])
'''


class Wheel:
    """Files of a wheel by their names. `write` sorts them, with one time for all, so that equal contents are equal bytes."""

    def __init__(self, name, version, tag):
        self.stem = f"{name.replace('-', '_')}-{version}"
        self.tag, self.files = tag, {}
        self.info = f"{self.stem}.dist-info"
        self.file_name = f"{self.stem}-{tag}.whl"

    def add(self, name, data, runs=False):
        self.files[name] = (data if isinstance(data, bytes) else data.encode(), runs)

    def add_tree(self, top, below):
        for path in sorted(top.rglob("*")):
            if path.is_file():
                self.add(f"{self.stem}.data/data/{below}/{path.relative_to(top)}", path.read_bytes(), runs=bool(path.stat().st_mode & 0o100))

    def add_launcher(self, name):
        self.add(f"{self.stem}.data/scripts/{name}", LAUNCHER, runs=True)

    def add_info(self, metadata):
        self.add(f"{self.info}/METADATA", metadata)
        self.add(f"{self.info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: tools/package\nRoot-Is-Purelib: false\nTag: {self.tag}\n")

    def write(self, folder, epoch, level):
        record = f"{self.info}/RECORD"
        lines = [f"{name},sha256={digest(data)},{len(data)}" for name, (data, _) in sorted(self.files.items())]
        self.add(record, "\n".join([*lines, f"{record},,"]) + "\n")
        # What pip reads stands last, as the format advises.
        names = sorted(self.files, key=lambda name: (name.startswith(self.info), name == record, name))
        files = [(name, self.files[name][0], 0o100755 if self.files[name][1] else 0o100644) for name in names]
        path = folder / self.file_name
        write_zip(path, files, time.gmtime(max(epoch, 315532800))[:6], level)  # zip begins in 1980
        return path


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def metadata(name, version, summary, requires=()):
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: {summary}", "License: Apache-2.0",
             "Requires-Python: >=3.8", "Classifier: Operating System :: POSIX :: Linux", *(f"Requires-Dist: {line}" for line in requires)]
    return "\n".join(lines) + "\n"
