#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/codegen/ptx_emulator.h"
#include "tessera/codegen/ptx/ptx.h"
#include "tessera/tile/interp.h"
#include "tessera/tile/text.h"

namespace tessera::codegen {
namespace {

TEST(Ptx, X) { }

}  // namespace
}  // namespace tessera::codegen
