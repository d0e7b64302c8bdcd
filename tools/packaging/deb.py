"""A Debian package, made by CPack: the tree in /usr/lib/megalith, links to its programs in /usr/bin, pages and completions where those of
packages lie."""
import email.utils
import gzip
import os
import shutil

from tree import run

CONTROL = """
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME megalith)
set(CPACK_PACKAGE_VERSION "{version}")
set(CPACK_PACKAGE_FILE_NAME "{file}")
set(CPACK_PACKAGE_DIRECTORY "{output}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "{summary}")
set(CPACK_PACKAGE_DESCRIPTION "Text or JSON lines in, a model out.")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "{maintainer}")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.34), libgcc-s1 (>= 3.4), libstdc++6 (>= 11)")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE {compression})
set(CPACK_INSTALLED_DIRECTORIES "{root};/")
set(CPACK_PACKAGING_INSTALL_PREFIX "/")
"""

# The libraries lie in a folder of their own on purpose: the package is for several releases of several distributions.
OVERRIDES = """megalith: embedded-library
megalith: custom-library-search-path
megalith: initial-upload-closes-no-bugs
# Two plugins call their library alone.
megalith: library-not-linked-against-libc
"""

# Where packages have what the tree has in share.
MOVED = ("man", "bash-completion", "zsh", "fish")


def packed(data):
    return gzip.compress(data, 9, mtime=0)


def lay_out(top, root, facts):
    """/ of the package."""
    home = root / "usr" / "lib" / "megalith"
    shutil.copytree(top, home)
    (root / "usr" / "bin").mkdir()
    for program in sorted((home / "bin").iterdir()):
        (root / "usr" / "bin" / program.name).symlink_to(f"../lib/megalith/bin/{program.name}")
    for name in MOVED:
        shutil.move(home / "share" / name, root / "usr" / "share" / name)
    for page in (root / "usr" / "share" / "man" / "man1").iterdir():
        page.with_name(page.name + ".gz").write_bytes(packed(page.read_bytes()))
        page.unlink()
    zsh = root / "usr" / "share" / "zsh"
    (zsh / "site-functions").rename(zsh / "vendor-completions")
    docs = root / "usr" / "share" / "doc" / "megalith"
    docs.mkdir(parents=True)
    (docs / "changelog.gz").write_bytes(packed(changelog_text(facts)))
    (docs / "copyright").write_text(copyright_text(home))
    overrides = root / "usr" / "share" / "lintian" / "overrides"
    overrides.mkdir(parents=True)
    (overrides / "megalith").write_text(OVERRIDES)
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent == home / "bin" or path.suffix == ".sh" else 0o644)
        os.utime(path, (facts["epoch"],) * 2, follow_symlinks=False)


def copyright_text(home):
    """Our licence in the words that Debian uses, and where those of the parts are."""
    names = sorted(path.name for path in (home / "share" / "licenses" / "megalith").iterdir())
    return ("Copyright 2026 the authors of Megalith\n\nMegalith is under the Apache License, version 2.0: /usr/share/common-licenses/Apache-2.0\n\n"
            "It holds libraries of Debian, whose licences are in /usr/lib/megalith/share/licenses/megalith:\n"
            + "".join(f"  {name}\n" for name in names))


def changelog_text(facts):
    """What Debian's tools read; what a release changes is in the CHANGELOG.md of its sources."""
    when = email.utils.formatdate(facts["epoch"])
    text = f"megalith ({facts['version']}) unstable; urgency=medium\n\n  * Release {facts['version']}.\n\n -- {facts['maintainer']}  {when}\n"
    return text.encode()


def make_deb(top, work, output, facts):
    root, config = work / "root", work / "CPackConfig.cmake"
    root.mkdir()
    (root / "usr" / "share").mkdir(parents=True)
    lay_out(top, root, facts)
    file = f"megalith_{facts['version']}_amd64"
    config.write_text(CONTROL.format(root=root, output=output.resolve(), file=file, **facts))
    run("cpack", "--config", config, cwd=work, env={**os.environ, "SOURCE_DATE_EPOCH": str(facts["epoch"]), "TZ": "UTC"})
    shutil.rmtree(output / "_CPack_Packages", ignore_errors=True)
    return output / f"{file}.deb"
