"""A test program whose sources are compiled as one."""

def unity_test(name, srcs, hdrs = [], deps = [], tags = [], **kwargs):
    """A cc_test of `srcs`, all included in one file that is made here.

    LibTorch's headers are nearly all that a test file costs: ten files take ten times as long as one.
    Names that two files of a test use for different things collide; the compiler says where.

    Args:
      name: of the test; the file that is compiled is unity_<name>.cc.
      srcs: the files of tests, each of which can be compiled by itself too.
      hdrs: what they include from here.
      deps: as of a cc_test.
      tags: as of a cc_test.
      **kwargs: passed on to it.
    """
    native.genrule(
        name = name + "_source",
        testonly = True,
        srcs = srcs,
        outs = ["unity_" + name + ".cc"],
        cmd = "for file in $(SRCS); do echo '#include \"'$$file'\"'; done > $@",
        tags = tags,
    )
    native.cc_library(
        name = name + "_files",
        testonly = True,
        textual_hdrs = srcs + hdrs,
        tags = tags,
    )
    native.cc_test(
        name = name,
        srcs = ["unity_" + name + ".cc"],
        tags = tags,
        deps = deps + [":" + name + "_files"],
        **kwargs
    )
