"""Every repository that the build needs, all of them on this machine: nothing is fetched.

In the WORKSPACE of a repository of your own, after `trainwreck` itself (docs/guide/out-of-tree.md):

    load("@trainwreck//third_party:repositories.bzl", "trainwreck_repositories")

    trainwreck_repositories()
"""

load(":cuda_repository.bzl", "cuda_repository")
load(":dygraphs.bzl", "dygraphs_repository")
load(":libtorch.bzl", "libtorch_repository")
load(":system.bzl", "system_library_repository")

# Debian's Bazel asks for these by name.
_DEBIAN = {
    "rules_java": "/usr/share/bazel/rules/java",
    "rules_proto": "/usr/share/bazel/rules/proto",
    "bazel_skylib": "/usr/share/bazel/tools/skylib",
    "platforms": "/usr/share/bazel/platforms",
}

# A folder of ours as a repository, wherever ours lies.
def _folder_repository_impl(repository_ctx):
    for child in repository_ctx.path(repository_ctx.attr.workspace_file).dirname.readdir():
        repository_ctx.symlink(child, child.basename)

_folder_repository = repository_rule(
    implementation = _folder_repository_impl,
    attrs = {"workspace_file": attr.label(allow_single_file = True)},
    local = True,
)

def trainwreck_repositories():
    for name, path in _DEBIAN.items():
        native.local_repository(name = name, path = path)
    _folder_repository(
        name = "rules_cc",
        workspace_file = Label("//third_party:rules_cc/WORKSPACE"),
    )
    _folder_repository(
        name = "remote_coverage_tools",
        workspace_file = Label("//third_party/coverage_tools:WORKSPACE"),
    )
    cuda_repository(name = "cuda")
    dygraphs_repository(name = "dygraphs")
    libtorch_repository(name = "libtorch")
    system_library_repository(name = "system")
