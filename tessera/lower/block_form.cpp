#include "tessera/lower/block_form.h"

#include "tessera/lower/axes.h"

namespace tessera::lower {

Rounding rounding_of(const GroupOptions& options) {
  return {.to = options.contraction_dtype,
          .exact = options.exact,
          .changes_nothing = options.exact_operands};
}

BlockForm::BlockForm(const Group& group, const GroupOptions& options)
    : whole_(group), options_(options) {
  // Tiles of blocks are powers of two: fewer and longer axes leave less of them empty.
  whole_.stages = collapsed(group.stages);
  contraction_ = contraction_of(whole_, rounding_of(options_));
  if (contraction_ && options_.contraction_dtype == DType::BF16 && !options_.exact_operands &&
      multiply_adds(*contraction_) < kSmallContraction) {
    options_.contraction_dtype = DType::F32;
    contraction_ = contraction_of(whole_, rounding_of(options_));
  }
}

const Contraction* BlockForm::contraction() const {
  const bool is_one = contraction_ && multiply_adds(*contraction_) > 0 && !contraction_->bytes;
  return is_one ? &*contraction_ : nullptr;
}

}  // namespace tessera::lower
