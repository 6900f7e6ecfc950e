"""The LibTorch that TORCH_HOME names (ci/setup.sh finds or unpacks one), CPU libraries only."""

_BUILD = """
package(default_visibility = ["@//:torch_users"])

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
)
"""

def _libtorch_repository_impl(repository_ctx):
    home = repository_ctx.os.environ.get("TORCH_HOME", "")
    if not home:
        fail("TORCH_HOME is not set; run ci/setup.sh, which finds or unpacks LibTorch")
    repository_ctx.symlink(home + "/include", "include")
    repository_ctx.file("BUILD", _BUILD.format(lib = home + "/lib"))

libtorch_repository = repository_rule(
    implementation = _libtorch_repository_impl,
    environ = ["TORCH_HOME"],
    local = True,
)
