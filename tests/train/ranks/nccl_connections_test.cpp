#include "libcore/train/ranks/nccl_connections.h"

#include <string>

#include <gtest/gtest.h>

namespace megalith {
namespace {

// Lines by the formats of NCCL's sources (src/transport/p2p.cc, shm.cc, net.cc, net_ib.cc, coll_net.cc).
constexpr char kLog[] =
    "node1:70:88 [0] NCCL INFO Using network IB\n"
    "node1:70:88 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.1.0.4<0>\n"
    "node1:70:88 [0] NCCL INFO NET/IB : No device found.\n"
    "node1:70:91 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
    "node1:70:91 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM\n"
    "node1:70:91 [0] NCCL INFO Channel 00/0 : 9[1] -> 0[0] [receive] via NET/IB/0/GDRDMA\n"
    "node1:70:91 [0] NCCL INFO Channel 00/0 : 0[0] -> 9[1] [send] via NET/IB/0(1)/GDRDMA/Shared\n"
    "node1:70:91 [0] NCCL INFO Channel 00/1 : 0[0] -> 2[2] via P2P/direct pointer/read\n"
    "node1:70:91 [0] NCCL INFO Channel 03 : 0[0] -> 1[1] via SHM/direct/direct\n"
    "node1:70:91 [0] NCCL INFO CollNet 00/1 : 0 [send] via COLLNET/SHARP/0\n"
    "node1:70:88 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.1.0.4<0>\n"
    "node1:70:88 [0] NCCL INFO a line that goes via another thing\n";

TEST(NcclConnections, AreCountedByTransport) {
  EXPECT_EQ(nccl_connections_line(kLog),
            " > NCCL's connections: 1 by COLLNET/SHARP/0, 1 by NET/IB/0(1)/GDRDMA/Shared, "
            "1 by NET/IB/0/GDRDMA, 2 by P2P/CUMEM, 1 by P2P/direct pointer/read, 1 by SHM/direct/direct; "
            "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.1.0.4<0>");
}

TEST(NcclConnections, MayBeUnknown) {
  EXPECT_EQ(nccl_connections_line(""), " > NCCL's connections: its log names none");
  EXPECT_EQ(nccl_connections_line("node1:70:88 [0] NCCL INFO NET/Socket : Using [0]eth0:10.1.0.4<0>"),
            " > NCCL's connections: its log names none; NET/Socket : Using [0]eth0:10.1.0.4<0>");
}

}  // namespace
}  // namespace megalith
