"""A zip archive compressed by libdeflate, whose highest level saves a thirtieth of zlib's. Every machine that builds Megalith has the library."""
import concurrent.futures
import ctypes
import os
import struct
import threading
import zlib

from tree import PackageError

LEVELS = range(1, 13)
local = threading.local()  # a compressor serves one thread


def library():
    for name in ("libdeflate.so.0", "libdeflate.so"):
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        found.libdeflate_alloc_compressor.restype = ctypes.c_void_p
        found.libdeflate_deflate_compress.restype = ctypes.c_size_t
        found.libdeflate_deflate_compress.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
        return found
    raise PackageError(66, "libdeflate is not installed; install it as tools/setup does")


def compressed(code, data, level):
    """`data` as a stream of deflate; nothing where that is not smaller."""
    if not hasattr(local, "compressor"):
        local.compressor = code.libdeflate_alloc_compressor(level)
    room = ctypes.create_string_buffer(len(data))
    size = code.libdeflate_deflate_compress(local.compressor, data, len(data), room, len(data)) if data else 0
    return room.raw[:size] if size else None


class ZipEntry:
    STORED, DEFLATED = 0, 8

    def __init__(self, name, data, mode, packed):
        self.name, self.size, self.mode, self.crc = name.encode(), len(data), mode, zlib.crc32(data)
        self.method, self.packed = (self.DEFLATED, packed) if packed is not None else (self.STORED, data)

    def common(self, when):
        """What the headers before the data and at the end of the archive share."""
        year, month, day, hour, minute, second = when
        return struct.pack("<HHHHHIIIHH", 20, 0x800, self.method, hour << 11 | minute << 5 | second // 2,
                           (year - 1980) << 9 | month << 5 | day, self.crc, len(self.packed), self.size, len(self.name), 0)

    def at_end(self, when, offset):
        return struct.pack("<IH", 0x02014B50, 0x314) + self.common(when) + struct.pack("<HHHII", 0, 0, 0, self.mode << 16, offset) + self.name


def write_zip(path, files, when, level):
    """`files`: (name, data, mode) in the order of the archive; `when`: a time for all of them, from 1980 on."""
    code = library()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        packed = list(pool.map(lambda file: compressed(code, file[1], level), files))
    entries = [ZipEntry(*file, data) for file, data in zip(files, packed)]
    with open(path, "wb") as out:
        offsets = []
        for entry in entries:
            offsets.append(out.tell())
            out.write(struct.pack("<I", 0x04034B50) + entry.common(when) + entry.name + entry.packed)
        begin = out.tell()
        for entry, offset in zip(entries, offsets):
            out.write(entry.at_end(when, offset))
        size = out.tell() - begin
        out.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, len(entries), len(entries), size, begin, 0))
