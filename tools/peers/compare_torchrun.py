#!/usr/bin/env python3
"""Starts megalith-pretrain with torch's launchers and compares its lines with those of one rank.

    BUILD=build/release python tools/peers/compare_torchrun.py

torchrun (static and c10d rendezvous), torch.distributed.launch, and two agents on one machine, which give both ranks
LOCAL_RANK 0. The agent's store is torch's own, which megalith-pretrain asks where rank 0 listens.
"""
import os, re, subprocess, sys, tempfile

from programs import BIN, TOKENIZER, run, say
import programs

PRETRAIN = os.path.join(BIN, "megalith-pretrain")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
MODEL = ("--num-layers 2 --hidden-size 16 --num-attention-heads 2 --seq-length 12 --max-position-embeddings 12 --micro-batch-size 2 "
         "--global-batch-size 4 --train-iters 10 --lr 0.01 --log-interval 1 --eval-iters 0 --split 1,0,0 --threads 1").split()


def lines(log):
    """What the iteration lines say of the training itself: neither when nor how fast, nor how many ranks it took."""
    wanted = r"iteration +\d+/|(?:consumed samples|learning rate|lm loss|grad norm): +[^|]*"
    return [re.findall(wanted, line) for line in log.splitlines() if "lm loss" in line]


def start(launcher, words):
    return subprocess.Popen([*launcher, PRETRAIN, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


with tempfile.TemporaryDirectory() as folder:
    corpus = os.path.join(folder, "c.jsonl")
    with open(corpus, "w") as out:
        for document in range(40):
            out.write('{"text": "%s"}\n' % " ".join(str(document * number) for number in range(60)))
    made = run("megalith-preprocess", "--input", corpus, "--output-prefix", os.path.join(folder, "c"), "--tokenizer-type",
               "HuggingFaceTokenizer", "--tokenizer-model", TOKENIZER)
    if made.returncode:
        raise SystemExit(made.stderr)
    words = [*MODEL, "--data-path", os.path.join(folder, "c_text_document"), "--tokenizer-type", "HuggingFaceTokenizer",
             "--tokenizer-model", TOKENIZER]
    wanted = lines(subprocess.run([PRETRAIN, *words], capture_output=True, text=True).stdout)
    say(len(wanted) == 10, "one rank trains")

    def compare(what, *launchers):
        agents = [start(launcher, words) for launcher in launchers]
        logs = [agent.communicate(timeout=300)[0] for agent in agents]
        same = sum((lines(log) for log in logs), []) == wanted
        say(same and not any(agent.returncode for agent in agents), what)
        if not same:
            print("\n".join(logs))

    compare("torchrun, static", [*TORCHRUN, "--nproc_per_node", "2", "--master_port", "29411", "--no-python"])
    compare("torchrun, c10d", [*TORCHRUN, "--nproc_per_node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:29412",
                               "--rdzv-id", "job", "--local-addr", "127.0.0.1", "--no-python"])
    compare("torch.distributed.launch", [sys.executable, "-m", "torch.distributed.launch", "--use-env", "--no-python", "--nproc_per_node",
                                         "2", "--master_port", "29413"])
    compare("two agents on one machine", *([*TORCHRUN, "--nnodes", "2", "--node_rank", rank, "--nproc_per_node", "1", "--master_addr",
                                            "127.0.0.1", "--master_port", "29414", "--no-python"] for rank in "01"))
sys.exit(1 if programs.failed else 0)
