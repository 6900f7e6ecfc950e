"""The trainer with something lost, for the tests of bisect: sources that differ from the trainer's own by one line, compiled
once here, and what it takes to link a trainer with them."""

def regression(name, source, line, becomes):
    """Compiles `source` of the trainer with one line replaced.

    Args:
      name: what is lost.
      source: file of trainer/optimizers.
      line: a regular expression of sed; a build error when no line of the source matches.
      becomes: what stands there instead.
    """
    # The file itself, and what the trainer compiles it in.
    for rule, src, out in [
        (name + "_source", "optimizers/" + source, name + "/" + source),
        (name + "_unity", "unity_optimizers_0.cc", name + "/unity_" + source),
    ]:
        native.genrule(
            name = rule,
            testonly = True,
            srcs = ["//trainer:" + src],
            outs = [out],
            cmd = "sed 's@%s@%s@' $< >$@ && ! cmp -s $< $@" % (line, becomes),
        )
    native.cc_library(
        name = name,
        testonly = True,
        srcs = [name + "/unity_" + source],
        tags = [
            "slow",
            "torch",
        ],
        deps = ["//trainer:optimizers"],
    )

def _archive(library, ctx):
    # The one that the trainer's own binary is linked of, so nothing is compiled twice.
    either = [library.pic_static_library, library.static_library]
    if ctx.var["COMPILATION_MODE"] == "opt":
        either = reversed(either)
    return [archive for archive in either if archive][0] if any(either) else None

def _link_inputs_impl(ctx):
    archives, lines, flags = [], [], []
    for input in ctx.attr.program[CcInfo].linking_context.linker_inputs.to_list():
        for library in input.libraries:
            archive = _archive(library, ctx)
            if not archive:
                continue
            archives.append(archive)
            whole = ["-Wl,--whole-archive", "%s", "-Wl,--no-whole-archive"] if library.alwayslink else ["%s"]
            lines += [word.replace("%s", archive.short_path) for word in whole]
        flags += [flag for flag in input.user_link_flags if flag not in flags or flag.startswith("-Wl,--")]
    for name, regression in [(target.label.name, target) for target in ctx.attr.regressions]:
        for input in regression[CcInfo].linking_context.linker_inputs.to_list():
            if input.owner == regression.label:
                archive = _archive(input.libraries[0], ctx)
                archives.append(archive)
                lines.append("regression:%s=%s" % (name, archive.short_path))
    listing = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(listing, "\n".join(lines + flags) + "\n")
    return DefaultInfo(files = depset([listing]), runfiles = ctx.runfiles(files = archives + [listing]))

link_inputs = rule(
    implementation = _link_inputs_impl,
    doc = "A list of the archives and flags that `program` is linked of, and of the regressions' own archives.",
    attrs = {
        "program": attr.label(providers = [CcInfo]),
        "regressions": attr.label_list(providers = [CcInfo]),
    },
)
