"""The LibTorch that TORCH_HOME names (ci/setup.sh finds or unpacks one).

`:torch` is its CPU half: all that most programs link. `:torch_cuda` is the other, for programs that are to use GPUs; it
exists where TORCH_HOME has the CUDA libraries and CUDA_HOME a toolkit, and is incompatible with the build elsewhere:
`bazel test //...` skips what needs it, and cuda.bzl's CUDA_MISSING says why.
"""

# Visibility stands at each target: in a package's default this Bazel takes @trainwreck for another repository than the main
# one that it is here.
_BUILD = """
# Headers as one directory: thousands of files, one sandbox mount.
cc_library(
    name = "torch",
    hdrs = ["include"],
    includes = [
        "include",
        "include/torch/csrc/api/include",
    ],
    defines = ["USE_C10D_GLOO"],
    linkopts = [
        "-L{lib}",
        "-Wl,-rpath,{lib}",
        "-Wl,--no-as-needed",
        "-ltorch_cpu",
        "-lc10",
        "-Wl,--as-needed",
        "-Wl,--allow-shlib-undefined",
    ],
    visibility = ["@trainwreck//:torch_users"],
)
"""

_CUDA_BUILD = """
# libtorch_cuda must be loaded for its kernels to register, though nothing may name one of its symbols.
cc_library(
    name = "torch_cuda",
    hdrs = ["cuda_include"],
    includes = ["cuda_include"],
    defines = ["USE_C10D_NCCL"],
    linkopts = [
        "-Wl,-rpath,{cuda}",
        "-Wl,--no-as-needed",
        "-ltorch_cuda",
        "-lc10_cuda",
        "-Wl,--as-needed",
        "-L{cuda}",
        "-lcudart",
    ],
    visibility = ["@trainwreck//:torch_users"],
    deps = [":torch"],
)
"""

_NO_CUDA_BUILD = """
cc_library(
    name = "torch_cuda",
    target_compatible_with = ["@trainwreck//third_party:cuda_toolkit"],
    visibility = ["@trainwreck//:torch_users"],
)
"""

def _missing_for_cuda(repository_ctx, torch, cuda):
    for path, what in [
        (cuda + "/bin/nvcc", "no CUDA toolkit (CUDA_HOME=%s has no bin/nvcc)" % cuda),
        (cuda + "/include/nccl.h", "the CUDA toolkit has no nccl.h (CUDA_HOME=%s)" % cuda),
        (torch + "/lib/libtorch_cuda.so", "LibTorch has no libtorch_cuda.so (TORCH_HOME=%s)" % torch),
    ]:
        if not cuda or not repository_ctx.path(path).exists:
            return what
    return ""

def _libtorch_repository_impl(repository_ctx):
    home = repository_ctx.os.environ.get("TORCH_HOME", "")
    if not home:
        fail("TORCH_HOME is not set; run ci/setup.sh, which finds or unpacks LibTorch")
    cuda = repository_ctx.os.environ.get("CUDA_HOME", "")
    missing = _missing_for_cuda(repository_ctx, home, cuda)
    repository_ctx.symlink(home + "/include", "include")
    if not missing:
        repository_ctx.symlink(cuda + "/include", "cuda_include")
    repository_ctx.file("cuda.bzl", "CUDA_MISSING = %s\n" % repr(missing))
    repository_ctx.file(
        "BUILD",
        _BUILD.format(lib = home + "/lib") +
        (_NO_CUDA_BUILD if missing else _CUDA_BUILD.format(cuda = cuda + "/lib64")),
    )

libtorch_repository = repository_rule(
    implementation = _libtorch_repository_impl,
    environ = ["TORCH_HOME", "CUDA_HOME"],
    local = True,
)
