#include "tessera/tile/gpu/block_program.h"

namespace tessera::tile::gpu {

Instruction::Instruction(const Instruction& other) = default;
Instruction::Instruction(Instruction&& other) noexcept = default;
Instruction& Instruction::operator=(const Instruction& other) = default;
Instruction& Instruction::operator=(Instruction&& other) noexcept = default;
Instruction::~Instruction() = default;

Body::Body() = default;
Body::Body(const Body& other) = default;
Body::Body(Body&& other) noexcept = default;
Body& Body::operator=(const Body& other) = default;
Body& Body::operator=(Body&& other) noexcept = default;
Body::~Body() = default;

}  // namespace tessera::tile::gpu
