#!/bin/sh
# keep_ptxas_report.sh COMMAND... -o OBJECT ...: runs nvcc, keeps in OBJECT.ptxas what `-Xptxas=-v` says of each kernel
# (registers, spills, shared memory), and prints everything else. tests/ops/cuda/machine_code_test.cpp reads that report of
# the code that is shipped: compiling the kernels a second time for it took two minutes.
object='' previous=''
for word in "$@"; do
  [ "$previous" != -o ] || object=$word
  previous=$word
done
said=$object.said
status=0
"$@" 2>"$said" || status=$?
report='^(ptxas info| +[0-9]+ bytes stack frame)'
grep -E "$report" "$said" >"$object.ptxas"
grep -Ev "$report" "$said" >&2
rm -f "$said"
exit $status
