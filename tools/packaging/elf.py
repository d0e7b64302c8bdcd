"""What tools/package reads of an ELF file (64 bits, little-endian), and the one thing that it changes there: the version of a symbol."""
import struct


class Symbol:
    """A symbol of the dynamic table. `version` is None where it has none; `place` is its number."""

    def __init__(self, name, version, defined, place):
        self.name, self.version, self.defined, self.place = name, version, defined, place


class Elf:
    """needed, soname, symbols and needed versions of a program or shared library."""

    NEEDED, SONAME = 1, 14
    NO_VERSION = 1  # of a symbol that every library may define

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.data = bytearray(file.read())
        self.sections = self._read_sections()
        self.strings = self._section(".dynstr")[0]
        tags = self._read_tags()
        self.needed = [self._text(value) for tag, value in tags if tag == self.NEEDED]
        self.soname = next((self._text(value) for tag, value in tags if tag == self.SONAME), None)
        self.needs = self._read_needs()
        self.symbols = self._read_symbols()

    def versions(self):
        """(library, version) of all that the file asks of other libraries."""
        return {(need["library"], need["version"]) for need in self.needs}

    def retarget(self, symbol, old, new, keep_version):
        """Makes `symbol`, the only one that asks for version `old`, ask for `new`, which others of the file ask for; without keep_version for
        no version at all. Does nothing where that is not so: what the file asks for then is what it says."""
        olds = [need for need in self.needs if need["version"] == old]
        news = [need for need in self.needs if need["version"] == new]
        users = [s for s in self.symbols if not s.defined and s.version == old]
        if len(olds) != 1 or not news or [s.name for s in users] != [symbol]:
            return
        # An entry is a hash, flags, the version's number, the name, the next entry. Its hash and its name become those of `new`.
        to, source = olds[0]["at"], news[0]["at"]
        self.data[to:to + 4] = self.data[source:source + 4]
        self.data[to + 8:to + 12] = self.data[source + 8:source + 12]
        if not keep_version:
            struct.pack_into("<H", self.data, self._section(".gnu.version")[0] + 2 * users[0].place, self.NO_VERSION)
        with open(self.path, "r+b") as file:
            file.write(self.data)

    @staticmethod
    def is_elf(path):
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"

    def _read_sections(self):
        table, = struct.unpack_from("<Q", self.data, 0x28)
        size, count, names = struct.unpack_from("<HHH", self.data, 0x3A)
        headers = [struct.unpack_from("<IIQQQQII", self.data, table + i * size) for i in range(count)]
        base = headers[names][4] if headers else 0
        return {self._text(header[0], base): (header[4], header[5], header[7]) for header in headers}

    def _section(self, name):
        return self.sections.get(name, (0, 0, 0))

    def _text(self, offset, base=None):
        begin = (self.strings if base is None else base) + offset
        return self.data[begin:self.data.index(0, begin)].decode()

    def _read_tags(self):
        at, size, _ = self._section(".dynamic")
        return [struct.unpack_from("<QQ", self.data, at + i) for i in range(0, size, 16)]

    def _read_needs(self):
        at, size, count = self._section(".gnu.version_r")
        needs = []
        for _ in range(count if size else 0):
            _, entries, library, first, following = struct.unpack_from("<HHIII", self.data, at)
            entry = at + first
            for _ in range(entries):
                _, _, number, name, step = struct.unpack_from("<IHHII", self.data, entry)
                needs.append({"library": self._text(library), "version": self._text(name), "number": number, "at": entry})
                entry += step
            at += following
        return needs

    def _read_symbols(self):
        at, size, _ = self._section(".dynsym")
        versions, version_size, _ = self._section(".gnu.version")
        named = {need["number"]: need["version"] for need in self.needs}
        symbols = []
        for place in range(1, size // 24):
            name, _, _, section, _, _ = struct.unpack_from("<IBBHQQ", self.data, at + 24 * place)
            number = struct.unpack_from("<H", self.data, versions + 2 * place)[0] & 0x7FFF if version_size else self.NO_VERSION
            symbols.append(Symbol(self._text(name), named.get(number), section != 0, place))
        return symbols
