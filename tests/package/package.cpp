#include "tests/package/package.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/compiler.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {
namespace {
namespace fs = std::filesystem;

/// A version's numbers: {3, 4, 29} for "3.4.29".
std::vector<int> numbers(const std::string& version) {
  std::vector<int> found;
  std::istringstream words(version);
  for (std::string word; std::getline(words, word, '.');) found.push_back(std::stoi(word));
  return found;
}

/// The highest versions that auditwheel's policy of manylinux_2_34_x86_64 lists.
const std::map<std::string, std::vector<int>> kMost = {
    {"GLIBC", {2, 34}}, {"GLIBCXX", {3, 4, 29}}, {"CXXABI", {1, 3, 13}}, {"GCC", {7, 0, 0}}};
/// Those of the policy's libraries that this project may need.
const Pattern& machine_library() {
  static const Pattern kNames(
      R"((lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so\.[0-9]+|ld-linux-x86-64\.so\.2))");
  return kNames;
}

/// What objdump says of one file.
void expect_tag_of(const std::string& file, const std::set<std::string>& inside) {
  static const Pattern kNeeded(R"(^ +NEEDED +(\S+)$)"), kPath(R"(^ +(RPATH|RUNPATH) +(\S+)$)"),
      kFrom(R"(^ +required from (\S+):$)"), kVersion(R"(^ +0x\S+ 0x\S+ [0-9]+ ([A-Z]+)_([0-9.]+)$)");
  std::istringstream lines(run_command("LC_ALL=C objdump -p " + file).out);
  std::string from;
  for (std::string line; std::getline(lines, line);) {
    if (const auto needed = kNeeded.whole(line); !needed.empty()) {
      EXPECT_TRUE(inside.contains(needed[1]) || machine_library().matches(needed[1]))
          << file << " needs " << needed[1];
    }
    if (const auto path = kPath.whole(line); !path.empty()) {
      EXPECT_TRUE(path[2] == "$ORIGIN" || path[2] == "$ORIGIN/../lib") << file << " looks in " << path[2];
    }
    if (const auto library = kFrom.whole(line); !library.empty()) from = library[1];
    const auto version = kVersion.whole(line);
    if (version.empty() || inside.contains(from)) continue;
    const auto most = kMost.find(version[1]);
    EXPECT_TRUE(most != kMost.end() && numbers(version[2]) <= most->second)
        << file << " asks " << from << " for " << line;
  }
}

/// Whether a file, or one below a folder, was written after `then`.
bool is_newer(const fs::path& path, fs::file_time_type then) {
  if (!fs::is_directory(path)) return fs::last_write_time(path) > then;
  const fs::recursive_directory_iterator files(path);
  return std::any_of(begin(files), end(files), [&](const fs::directory_entry& file) {
    return file.is_regular_file() && file.last_write_time() > then;
  });
}

/// What tests that run at the same time share: made by the first that needs it, and again after a build.
/// While an object exists, no other process has one of the same name.
class Shared {
 public:
  /// `make` fills the empty folder that it gets and returns the path of its result there.
  Shared(const std::string& name, const std::function<std::string(const std::string& folder)>& make)
      : folder_(MEGALITH_BINARY_DIR "/packages/" + name) {
    make_directories(folder_);
    lock_ = ::open((folder_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(::flock(lock_, LOCK_EX), 0) << folder_;
    if (is_up_to_date()) return;
    fs::remove(note());
    fs::remove_all(folder_);
    make_directories(folder_);
    result_ = make(folder_);
    if (!testing::Test::HasFailure()) write_file(note(), result_);
  }
  ~Shared() { ::close(lock_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  const std::string& result() const { return result_; }

 private:
  std::string note() const { return folder_ + ".made"; }  // has the path of what was made
  bool is_up_to_date() {
    if (!file_exists(note())) return false;
    const fs::file_time_type made = fs::last_write_time(note());
    for (const char* source :
         {MEGALITH_BINARY_DIR "/bin", MEGALITH_BINARY_DIR "/lib", MEGALITH_SOURCE_DIR "/LICENSE",
          MEGALITH_SOURCE_DIR "/docs/gpus.yaml", MEGALITH_SOURCE_DIR "/share",
          MEGALITH_SOURCE_DIR "/tools/package", MEGALITH_SOURCE_DIR "/tools/packaging"})
      if (is_newer(source, made)) return false;
    result_ = read_file(note());
    return true;
  }

  std::string folder_, result_;
  int lock_ = -1;
};

/// The folder of the packages that tests share.
Shared usual_packages() {
  return Shared("usual", [](const std::string& folder) {
    const CommandResult all =
        run_command(concat(MEGALITH_SOURCE_DIR "/tools/package ", usual_forms(),
                           " --level 1 --build " MEGALITH_BINARY_DIR " --output ", folder));
    EXPECT_EQ(all.code, 0) << all.err;
    return folder;
  });
}

/// Copies a file to a folder and returns the path of the copy.
std::string copy_to(const std::string& output, const fs::path& file) {
  const fs::path copy = fs::path(output) / file.filename();
  fs::copy_file(file, copy);
  return copy.string();
}

}  // namespace

std::string package_anew(const std::string& form, const std::string& output, int level) {
  const CommandResult made = run_command(concat(MEGALITH_SOURCE_DIR "/tools/package ", form, " --level ",
                                                level, " --build " MEGALITH_BINARY_DIR " --output ", output));
  EXPECT_EQ(made.code, 0) << made.err;
  const std::string path(trim(made.out));
  EXPECT_TRUE(file_exists(path)) << made.out;
  return path;
}

std::string usual_forms() {
  return run_command("command -v cpack").code == 0 ? "wheel tarball deb" : "wheel tarball";
}

void copy_packages(const std::string& output) {
  const Shared made = usual_packages();
  fs::copy(made.result(), output);
}

std::string package(const std::string& form, const std::string& output) {
  static const std::map<std::string, std::string> kEnds = {
      {"wheel", ".whl"}, {"tarball", ".tar.gz"}, {"deb", ".deb"}};
  make_directories(output);
  const auto end = kEnds.find(form);
  if (end == kEnds.end()) {
    const Shared made(form, [&](const std::string& folder) { return package_anew(form, folder); });
    return copy_to(output, made.result());
  }
  const Shared made = usual_packages();
  for (const auto& file : fs::directory_iterator(made.result()))
    if (file.path().string().ends_with(end->second)) return copy_to(output, file.path());
  ADD_FAILURE() << "no " << form << " was made";
  return {};
}

void copy_environment(const std::string& output) {
  const Shared made("environment", [](const std::string& folder) {
    const std::string environment = folder + "/venv", wheel = package("wheel", folder);
    const CommandResult installed = run_command(
        concat("python3 -m venv ", environment, " && ", environment, "/bin/pip install --no-index ", wheel));
    EXPECT_EQ(installed.code, 0) << installed.all();
    return environment;
  });
  const CommandResult copied = run_command(concat("cp -a ", made.result(), ' ', output));
  EXPECT_EQ(copied.code, 0) << copied.err;
}

std::string why_no_package() {
  if (kSanitizer) return "a sanitizer's library is not for other machines";
  for (const char* program : {"python3", "dpkg-query", "objdump", "strip"})
    if (run_command(concat("command -v ", program)).code != 0) return concat("there is no ", program);
  return {};
}

std::string why_no_environment() {
  return run_command("python3 -c 'import ensurepip, venv'").code == 0 ? "" : "there is no python3-venv";
}

CommandResult run_alone(const std::string& command, const std::string& folder, const std::string& bin) {
  return run_command(concat("cd ", folder, " && exec env -i HOME=", folder,
                            " OMP_WAIT_POLICY=passive PATH=", bin, ":/usr/bin:/bin sh -c '", command, "'"));
}

std::vector<std::string> elf_files(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::string magic(4, ' ');
    std::ifstream(entry.path()).read(magic.data(), 4);
    if (magic == "\177ELF") found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void expect_tag(const std::string& folder) {
  const std::vector<std::string> files = elf_files(folder);
  std::set<std::string> inside;
  for (const std::string& file : files) inside.insert(fs::path(file).filename().string());
  EXPECT_GE(files.size(), 30U) << folder;
  for (const std::string& file : files) expect_tag_of(file, inside);
}

void expect_programs(const std::string& bin) {
  const TempDir dir;
  const std::string folder = dir.path().string();
  const auto run = [&](const std::string& command) {
    const CommandResult result = run_alone(command, folder, bin);
    EXPECT_EQ(result.code, 0) << command << '\n' << result.all();
    return result;
  };
  int programs = 0;
  for (const auto& entry : fs::directory_iterator(bin)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("megalith")) continue;
    ++programs;
    EXPECT_TRUE(run(name + " --version").out.starts_with(name + " ")) << name;
  }
  EXPECT_GE(programs, 12) << bin;
  fs::copy(test_data("text/goldens/trained"), dir / "tokenizer");
  write_file(dir / "texts.jsonl", "{\"text\": \"def main(self): return 1\"}\n{\"text\": \"harbour\"}\n");
  write_file(dir / "run.yaml",
             "lr-decay-iters: 8\nnum-layers: 1\nhidden-size: 16\nnum-attention-heads: 2\nseq-length: 8\n"
             "max-position-embeddings: 8\nmicro-batch-size: 2\ntrain-iters: 2\nlr: 1e-3\neval-iters: "
             "0\nlog-interval: 1\n");
  run("gzip -k texts.jsonl && megalith preprocess --input texts.jsonl.gz --output-prefix texts "
      "--tokenizer-model "
      "tokenizer --append-eod");
  EXPECT_TRUE(file_exists(dir / "texts_text_document.idx"));
  const std::string train =
      "megalith-pretrain --config run.yaml --data-path texts_text_document --tokenizer-model "
      "tokenizer --save checkpoint ";
  EXPECT_NE(run(train + "--nproc 2").all().find("lm loss: "), std::string::npos);
  run(train + "--gpus 0,1 --log_dir logs --train-iters 4 --load checkpoint");
  run("megalith-convert checkpoint --to megatron --output megatron");
  const CommandResult refused =
      run_alone("megalith-pretrain --hidden-size 17 --num-attention-heads 2", folder, bin);
  EXPECT_EQ(refused.code, 64) << "an exception passes through all libraries";
}

}  // namespace megalith::test
