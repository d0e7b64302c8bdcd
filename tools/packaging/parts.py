"""Which packages of the distribution a tree holds parts of: their licence texts, and the list of them (CycloneDX)."""
import hashlib
import json
import pathlib
import re
import subprocess
import urllib.parse
import uuid

from elf import Elf
from tree import PackageError, elf_files

# What is compiled into our own files, by the entries of CMake's cache that name them. Nettle and utf8proc are archives where there are some.
COMPILED_IN = ("UTF8PROC_LIBRARY", "NETTLE_LIBRARY", "XXHASH_INCLUDE")
# Packages of sources that hold hundreds of libraries, and the folder of the one that is bundled.
FOLDERS = {"libboost-program-options": "libs/program_options/"}
COMMON_LICENCES = pathlib.Path("/usr/share/common-licenses")
DOCS = pathlib.Path("/usr/share/doc")


class Part:
    """A package of the distribution, its version, and the files of the tree that come from it."""

    def __init__(self, package, files):
        self.package, self.files = package, files
        said = subprocess.run(["dpkg-query", "-W", "-f", "${Version}\\n${source:Package}\\n${Homepage}\\n", package], capture_output=True,
                              text=True, check=False).stdout.split("\n")
        if len(said) < 3:
            raise PackageError(69, f"dpkg does not know {package}; packages are made on Debian and Ubuntu")
        self.version, self.source, self.homepage = said[:3]
        self.name = package.split(":")[0]

    def licence(self):
        path = DOCS / self.name / "copyright"
        if not path.exists():
            raise PackageError(66, f"{path}, the licence of what is bundled, is not there; install {self.name} again")
        text = path.read_text(errors="replace")
        return next((licence_of(text, folder) for name, folder in FOLDERS.items() if self.name.startswith(name)), text)


def licence_of(text, folder):
    """What a page in Debian's machine-readable form says of one folder: its head, the paragraphs of all files and of files of the folder, and
    the licences that these name. The whole text in another form."""
    head, *others = re.split(r"\n(?:[ \t]*\n)+", text)
    paragraphs = [(paragraph, dict(re.findall(r"^(Files|License):((?:.|\n[ \t])*)", paragraph, re.MULTILINE))) for paragraph in others]

    def is_about(fields):
        return fields.get("Files", "").strip() == "*" or folder in fields.get("Files", "")

    def first_line(fields):
        return fields.get("License", "").strip().split("\n")[0]

    named = {word.strip(",") for _, fields in paragraphs if is_about(fields) for word in first_line(fields).split()}
    kept = [paragraph for paragraph, fields in paragraphs if is_about(fields) or "Files" not in fields and first_line(fields) in named]
    return "\n\n".join([head, *kept]) + "\n" if named else text


def package_of(path):
    """The package that a file of this machine belongs to. dpkg may know it below / or below /usr."""
    real = str(pathlib.Path(path).resolve())
    for name in (real, real.removeprefix("/usr"), "/usr" + real, str(path)):
        found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return found.stdout.split(": ")[0].split(",")[0]
    raise PackageError(69, f"{path} belongs to no package of the distribution, so its licence is unknown")


def parts_of(build, origins):
    """All that a tree holds besides our own: `origins` is what add_libraries() gave."""
    files = {}
    for name, path in origins.items():
        files.setdefault(package_of(path), []).append(name)
    for entry in COMPILED_IN:
        path = pathlib.Path(build.cache[entry])
        files.setdefault(package_of(path / "xxhash.h" if path.is_dir() else path), [])
    return [Part(package, sorted(names)) for package, names in sorted(files.items())]


def add_licences(top, licence, parts):
    """Our licence at the top, and each part's, with the texts of the distribution that it refers to, in share/licenses/megalith."""
    (top / "LICENSE").write_bytes(licence.read_bytes())  # pip removes a folder that holds no other files than its own
    folder = top / "share" / "licenses" / "megalith"
    folder.mkdir(parents=True)
    referred = set()
    for part in parts:
        text = part.licence()
        (folder / f"{part.name}.txt").write_text(text)
        referred |= set(re.findall(r"/usr/share/common-licenses/([A-Za-z0-9][A-Za-z0-9.+-]*[A-Za-z0-9])", text))
    for name in sorted(referred):
        path = COMMON_LICENCES / name
        if path.exists():
            (folder / f"{path.resolve().name}.txt").write_bytes(path.read_bytes())


def add_bill(top, build, commit, parts):
    """share/megalith/sbom.cdx.json: what the tree is made of, with a digest of each program and library."""
    own = {"type": "application", "name": "megalith", "version": build.version, "bom-ref": "megalith",
           "licenses": [{"license": {"id": "Apache-2.0"}}]}
    if commit:
        own["properties"] = [{"name": "megalith:commit", "value": commit}]
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": own},
            "components": [component_of(top, part) for part in parts] + [file_of(top, path) for path in elf_files(top)],
            "dependencies": [{"ref": "megalith", "dependsOn": [part.name for part in parts]}]}
    bill["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill, sort_keys=True))}"
    (top / "share" / "megalith" / "sbom.cdx.json").write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n")


def component_of(top, part):
    found = {"type": "library", "bom-ref": part.name, "name": part.name, "version": part.version, "purl": purl(part),
             "licenses": [{"license": {"name": f"share/licenses/megalith/{part.name}.txt"}}]}
    if part.homepage:
        found["externalReferences"] = [{"type": "website", "url": part.homepage}]
    if part.files:
        found["properties"] = [{"name": "megalith:file", "value": f"lib/{name}"} for name in part.files]
    return found


def purl(part):
    return f"pkg:deb/{distribution()}/{part.name}@{urllib.parse.quote(part.version)}"


def distribution():
    release = dict(line.strip().split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return release.get("ID", "debian").strip('"')


def file_of(top, path):
    name = str(path.relative_to(top))
    return {"type": "file", "bom-ref": name, "name": name,
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}]}


# The tag manylinux_2_34 stands for Ubuntu 22.04 and RHEL 9: no version above these may be asked for.
MOST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (7, 0, 0)}
TAG = "manylinux_2_34_x86_64"


def check_versions(top):
    """Refuses a tree with a file that asks glibc or the libraries of C++ for more than the tag allows."""
    bad = []
    for path in elf_files(top):
        for library, version in sorted(Elf(path).versions()):
            name, _, number = version.rpartition("_")
            parts = tuple(int(word) for word in number.split(".")) if re.fullmatch(r"[0-9.]+", number) else ()
            if not (top / "lib" / library).exists() and (version == "GLIBC_PRIVATE" or parts > MOST.get(name, parts)):
                bad.append(f"{path.name} asks {library} for {version}")
    if bad:
        raise PackageError(70, f"{'; '.join(bad)}; wanted at most what {TAG} names: build on Debian 12")
