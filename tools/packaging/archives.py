"""Archives whose bytes depend on contents alone: names in order, one time, no user."""
import gzip
import lzma
import tarfile


def write_tar(top, path, epoch, level=9, root=None):
    """The folder `top`, under its name or, where `root` is a folder, under its path from there: a plain archive for NAME.tar, compressed for
    NAME.tar.gz and NAME.txz."""
    with open(path, "wb") as file, compressed(file, path.name, epoch, level) as stream, \
            tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for member in [top, *sorted(top.rglob("*"))]:
            entry = tar.gettarinfo(member, member.relative_to(root or top.parent).as_posix())
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = epoch, 0, 0, "root", "root"
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            if entry.isfile():
                with open(member, "rb") as data:
                    tar.addfile(entry, data)
            else:
                tar.addfile(entry)


def compressed(file, name, epoch, level):
    if name.endswith(".gz"):
        return gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=min(level, 9), mtime=epoch)
    if name.endswith("xz"):
        return lzma.LZMAFile(file, "wb", preset=9 | lzma.PRESET_EXTREME)
    return file
