"""@cuda: the toolkit that CUDA_HOME names (ci/setup.sh finds one), or an empty one that says so."""

_DEFS = """
HAVE_CUDA = {have}
NVCC = "{nvcc}"
NVCC_VERSION = "{version}"
"""

_BUILD = """
package(default_visibility = ["//visibility:public"])

# Headers as one directory: one sandbox mount.
cc_library(
    name = "cudart",
    hdrs = ["include"],
    includes = ["include"],
    linkopts = ["{library}", "-lrt", "-lpthread", "-ldl"],
)
"""

_BUILD_WITHOUT = """
cc_library(name = "cudart", visibility = ["//visibility:public"])
"""

def _cuda_repository_impl(repository_ctx):
    home = repository_ctx.os.environ.get("CUDA_HOME", "")
    nvcc = repository_ctx.path(home + "/bin/nvcc") if home else None
    if not nvcc or not nvcc.exists:
        # buildifier: disable=print
        print("CUDA_HOME names no toolkit with bin/nvcc: .cu files are not compiled, tests that need them are skipped")
        repository_ctx.file("defs.bzl", _DEFS.format(have = False, nvcc = "", version = ""))
        repository_ctx.file("BUILD", _BUILD_WITHOUT)
        return
    version = repository_ctx.execute([nvcc, "--version"])
    if version.return_code != 0:
        fail("%s --version: %s" % (nvcc, version.stderr))
    for folder in ["lib64", "lib", "targets/x86_64-linux/lib"]:
        library = repository_ctx.path("%s/%s/libcudart_static.a" % (home, folder))
        if library.exists:
            break
    if not library.exists:
        fail("CUDA_HOME=%s holds no libcudart_static.a" % home)
    repository_ctx.symlink(home + "/include", "include")
    repository_ctx.file("defs.bzl", _DEFS.format(
        have = True,
        nvcc = nvcc,
        version = version.stdout.strip().split("\n")[-1],
    ))
    repository_ctx.file("BUILD", _BUILD.format(library = library))

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
