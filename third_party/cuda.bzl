"""The CUDA toolkit that CUDA_HOME names, and a rule that compiles .cu files with its nvcc.

    load("//third_party:cuda.bzl", "cuda_library")

    cuda_library(
        name = "tensor_stats_cuda",
        srcs = ["tensor_stats_cuda.cu"],
        hdrs = ["tensor_stats_cuda.h"],           # compiles without the toolkit
        without_cuda = ["tensor_stats_absent.cc"],  # compiled instead where there is no nvcc
        deps = [":tensor_stats"],
    )

The library is an ordinary cc_library; it brings the CUDA runtime, statically linked, so a program needs only the
driver. Code is made for Hopper (sm_90); other GPUs from Ampere on compile the PTX when the program starts.
"""

load("@cuda//:defs.bzl", "HAVE_CUDA", "NVCC", "NVCC_VERSION")

NVCC_FLAGS = [
    "-std=c++20",
    "-O3",
    "-gencode=arch=compute_90,code=sm_90",
    "-gencode=arch=compute_80,code=compute_80",
    "-Xcompiler=-fPIC,-Wall,-Wextra,-Wno-unused-parameter",
    "-expt-relaxed-constexpr",  # std::bit_cast on the device
    "-fmad=false",  # a product is rounded before it is added, as on the CPU: the same bits
    # Warnings are errors, those of ptxas too: registers that spill, local memory.
    "-Werror=all-warnings",
    "-Xptxas=-warn-spills,-warn-lmem-usage",
]

def _cuda_object_impl(ctx):
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    output = ctx.actions.declare_file(ctx.label.name + ".pic.o")
    arguments = ctx.actions.args()
    arguments.add_all(NVCC_FLAGS)
    arguments.add_all(ctx.attr.copts)
    arguments.add_all(context.defines, format_each = "-D%s")
    arguments.add_all(depset(transitive = [context.includes, context.system_includes]), format_each = "-I%s")
    arguments.add_all(context.quote_includes, format_each = "-I%s")
    arguments.add("-I.")
    arguments.add_all(["-c", ctx.file.src, "-o", output])
    ctx.actions.run(
        executable = NVCC,
        arguments = [arguments],
        inputs = depset([ctx.file.src] + ctx.files.hdrs, transitive = [context.headers]),
        outputs = [output],
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s with nvcc" % ctx.file.src.short_path,
        # PATH for the host compiler; the version makes another toolkit another action.
        env = {"PATH": "/bin:/usr/bin", "NVCC_VERSION": NVCC_VERSION},
    )
    return [DefaultInfo(files = depset([output]))]

_cuda_object = rule(
    implementation = _cuda_object_impl,
    attrs = {
        "src": attr.label(allow_single_file = [".cu"]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
    },
)

def cuda_library(name, srcs, host_srcs = [], hdrs = [], private_hdrs = [], without_cuda = [], deps = [], copts = [], **kwargs):
    """A cc_library of .cu files.

    Args:
      name: of the library.
      srcs: .cu files.
      host_srcs: .cc files that are compiled in either case.
      hdrs: its headers for others.
      private_hdrs: .h and .cuh files that only srcs and without_cuda include.
      without_cuda: .cc files that take the place of srcs where there is no nvcc.
      deps: cc_library targets.
      copts: further flags of nvcc.
      **kwargs: of cc_library.
    """
    if not HAVE_CUDA:
        native.cc_library(name = name, srcs = without_cuda + host_srcs + private_hdrs, hdrs = hdrs, deps = deps, **kwargs)
        return
    objects = []
    for src in srcs:
        object = name + "_" + src.replace("/", "_").replace(".cu", "")
        _cuda_object(
            name = object,
            src = src,
            hdrs = hdrs + private_hdrs,
            deps = deps + ["@cuda//:cudart"],
            copts = copts,
            testonly = kwargs.get("testonly", False),
            visibility = ["//visibility:private"],
        )
        objects.append(":" + object)
    native.cc_library(
        name = name,
        srcs = objects + host_srcs,
        hdrs = hdrs,
        linkstatic = True,  # the runtime's symbols do not cross from a shared library
        deps = deps + ["@cuda//:cudart"],
        **kwargs
    )
