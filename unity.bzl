"""Several sources compiled as one: what a file costs to compile is mostly its headers."""

def unity_test(name, srcs, hdrs = [], deps = [], tags = [], **kwargs):
    """A cc_test of `srcs`, all included in one file that is made here.

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

def unity_library(name, srcs, apart = [], at_once = 4, tags = [], **kwargs):
    """A cc_library of `srcs`, a few of them compiled as one; what an edit costs stays small.

    What a file has in its nameless namespace is put into one of the file's name too, so that all
    files may use the same names there. Behind that namespace all of these are seen: a name that a
    file uses there must be its own alone; the compiler says where. Messages of the compiler name
    the file as it is.

    Args:
      name: of the library.
      srcs: its sources, each of which can be compiled by itself too, and its private headers.
      apart: sources that are compiled by themselves.
      at_once: how many are compiled as one.
      tags: as of a cc_library.
      **kwargs: passed on to it.
    """
    sources = apart + [src for src in srcs if src.endswith(".h")]
    srcs = [src for src in srcs if not src.endswith(".h")]
    for begin in range(0, len(srcs), at_once):
        part = "unity_%s_%d.cc" % (name, begin // at_once)
        sources.append(part)
        native.genrule(
            name = part + "_source",
            srcs = srcs[begin:begin + at_once],
            outs = [part],
            cmd = """for file in $(SRCS); do
                name=$$(basename $$file .cc)
                echo "#line 1 \\"$$file\\""
                sed -e "s|^namespace {$$|namespace in_$$name { namespace {|" -e "s|^}  // namespace$$|}} using namespace in_$$name;|" $$file
            done > $@""",
            tags = tags,
        )
    native.cc_library(
        name = name,
        srcs = sources,
        tags = tags,
        **kwargs
    )
