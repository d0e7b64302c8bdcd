#pragma once

#include <string>
#include <vector>

#include "tests/support/files.h"

namespace megalith::test {

/// The file that `tools/package FORM` makes of this build in the folder `output`. Fails the test if it makes
/// none. package() copies one that all tests share, compressed in haste, and makes it again after a build;
/// package_anew() always makes one, compressed as `level` says.
std::string package(const std::string& form, const std::string& output);
std::string package_anew(const std::string& form, const std::string& output, int level = 1);

/// The forms that tests share and that one run of tools/package makes: "wheel tarball deb", without the last
/// where there is no cpack.
std::string usual_forms();
/// Copies all of them, and their SHA256SUMS, to the new folder `output`.
void copy_packages(const std::string& output);

/// Copies a Python environment, in which the wheel is installed and which all tests share, to the new folder
/// `output`. `bin/python -m pip` is the copy's pip; the script bin/pip belongs to the environment that all
/// share.
void copy_environment(const std::string& output);

/// Why no package or no Python environment can be made here, for GTEST_SKIP(); empty if one can be.
std::string why_no_package();
std::string why_no_environment();

/// A training of two steps on made-up data.
inline constexpr char kSmallestTraining[] =
    "megalith-pretrain --mock-data --vocab-size 64 --num-layers 1 --hidden-size 16 --num-attention-heads 2 "
    "--seq-length 8 --max-position-embeddings 8 --micro-batch-size 2 --train-iters 2 --lr 1e-3 "
    "--eval-iters 0 --log-interval 1";

/// Runs a shell command in `folder` with no more in the environment than PATH, which begins with `bin`, and
/// HOME.
CommandResult run_alone(const std::string& command, const std::string& folder, const std::string& bin);

/// Programs and libraries below a folder.
std::vector<std::string> elf_files(const std::string& folder);

/// Expects that each program and library below `folder` asks for no symbol version and no library of the
/// machine beyond those of the tag manylinux_2_34_x86_64 (PEP 600; auditwheel's policy), and that it looks
/// for libraries beside itself alone.
void expect_tag(const std::string& folder);

/// Expects that the programs of the folder `bin` start, train on two ranks, and read gzip and YAML, in which
/// each plugin that an installation always has is opened.
void expect_programs(const std::string& bin);

}  // namespace megalith::test
