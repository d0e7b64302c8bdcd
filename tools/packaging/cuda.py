"""The CUDA plugin as a wheel beside that of the programs, which looks for NVIDIA's libraries in the wheels of its environment."""
import pathlib

from elf import Elf
from parts import TAG, check_versions, package_of
from tree import PackageError, install, run
from wheel import Wheel, metadata

PLUGIN = "libmegalith_cuda.so"
# NVIDIA's wheels for the library that the plugin asks for: its own, and that of the NCCL which several GPUs need (ops/cuda/nccl).
WHEELS = {"libcublasLt.so.12": ("nvidia-cublas-cu12>=12,<13", "nvidia-nccl-cu12>=2.22"),
          "libcublasLt.so.13": ("nvidia-cublas>=13,<14", "nvidia-nccl-cu13>=2.22")}


def make_cuda_wheel(top, build, licence):
    """The wheel, and nothing of the tree but the plugin."""
    if not (build.folder / "lib" / PLUGIN).exists():
        raise PackageError(69, f"{build.folder}/lib/{PLUGIN} is not there: the toolkit was missing when the build was configured (docs/cuda.md)")
    install(build, top, "cuda")
    plugin = top / "lib" / PLUGIN
    plugin.chmod(0o644)
    forget_toolkit(plugin, top)
    check_versions(top)
    wheel = Wheel("megalith-cuda", build.version, f"py3-none-{TAG}")
    wheel.add(f"{wheel.stem}.data/data/lib/megalith/lib/{PLUGIN}", plugin.read_bytes())
    wheel.add(f"{wheel.info}/licenses/LICENSE", licence.read_bytes())
    wheel.add(f"{wheel.info}/licenses/cudart.txt", runtime_licence(build))
    wheel.add_info(metadata("megalith-cuda", build.version, "Megalith's plugin for NVIDIA GPUs", [f"megalith=={build.version}", *libraries_of(plugin)]))
    return wheel


def libraries_of(plugin):
    needed = [WHEELS[name] for name in Elf(plugin).needed if name in WHEELS]
    if len(needed) != 1:
        raise PackageError(70, f"{plugin.name} needs {', '.join(Elf(plugin).needed)}; wanted one of {', '.join(WHEELS)}")
    return needed[0]


def forget_toolkit(plugin, top):
    """The build's path to the toolkit means nothing elsewhere."""
    script = top / "rpath.cmake"
    script.write_text(f'file(RPATH_SET FILE "{plugin}" NEW_RPATH "$ORIGIN")\n')
    run("cmake", "-P", script)
    script.unlink()


def runtime_licence(build):
    """That of the CUDA runtime, which the plugin holds as an archive."""
    archive = pathlib.Path(build.cache["CUDA_cudart_static_LIBRARY"]).resolve()
    for folder in archive.parents:
        for pattern in ("EULA.txt", "dist-info/nvidia_cuda_runtime-*/licenses/License.txt"):
            for path in sorted(folder.glob(pattern)):
                return path.read_bytes()
    return (pathlib.Path("/usr/share/doc") / package_of(archive).split(":")[0] / "copyright").read_bytes()
