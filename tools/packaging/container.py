"""A container image as an OCI archive: a minimal root of Debian, made by mmdebstrap, with the tree of the Debian package."""
import os
import shutil

from archives import write_tar
from deb import lay_out
from tree import run

# Beside the essential packages, which have a shell.
PACKAGES = "libstdc++6"
SUITE = "bookworm"


def make_root(top, root, facts):
    """/ of the container."""
    run("mmdebstrap", "--quiet", "--variant=essential", f"--include={PACKAGES}", SUITE, root,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(facts["epoch"])})
    for folder in ("var/cache/apt", "var/lib/apt/lists", "var/log", "usr/share/doc/libc6"):
        shutil.rmtree(root / folder, ignore_errors=True)
    ours = root.with_name("ours")
    (ours / "usr" / "share").mkdir(parents=True)
    lay_out(top, ours, facts)
    shutil.copytree(ours, root, symlinks=True, dirs_exist_ok=True)
    for path in [root, *root.rglob("*")]:  # what was made now, too
        os.utime(path, (min(path.lstat().st_mtime, facts["epoch"]),) * 2, follow_symlinks=False)


def make_container(top, work, output, facts):
    root, image = work / "root", work / "megalith"
    make_root(top, root, facts)
    name, created = f"{image}:{facts['version']}", facts["time"]
    run("umoci", "init", "--layout", image)
    run("umoci", "new", "--image", name)
    run("umoci", "insert", "--image", name, "--history.created", created, root, "/")
    run("umoci", "config", "--image", name, "--created", created, "--history.created", created, "--config.entrypoint", "megalith", "--author",
        facts["maintainer"], "--config.env", "PATH=/usr/bin:/bin", "--config.workingdir", "/")
    run("umoci", "gc", "--layout", image)
    archive = output / f"megalith-{facts['version']}-oci.tar"
    write_tar(image, archive, facts["epoch"], root=image)  # engines look for index.json at the top
    return archive
