#include <iostream>

#include <unistd.h>

#include "apps/app.h"
#include "apps/siblings.h"
#include "libcore/base/error.h"
#include "libcore/base/terminal.h"
#include "libcore/doctor/doctor.h"
#include "libcore/options/cli.h"

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("doctor", [&] {
    DoctorConfig config;
    Options options("doctor", "Say what of Megalith runs on this machine, and what to do about the rest.");
    options.add("Machine", config).epilog("megalith-doctor --save checkpoints\n");
    if (!parse_options(options, argc, argv)) return 0;
    const Diagnosis diagnosis = diagnose(config, app_path(own_folder(), "pretrain"));
    if (config.json)
      std::cout << diagnosis_json(diagnosis).dump(1) << '\n';
    else
      std::cout << diagnosis_text(diagnosis, columns_of(STDOUT_FILENO));
    return diagnosis.smallest_run_fails ? exit_code(ErrorKind::kDevice) : 0;
  });
}
