//! The core's clock: Table 1 of the Freecursive paper, one instruction at a time and in order.
//!
//! Waiting for memory is not in it: a replay adds that.

use iced_x86::{Decoder, DecoderOptions, Mnemonic};

/// Cycles that an instruction which loads or stores takes longer: the second of 1 + 1.
pub const DATA: u64 = 1;
/// Cycles of an answer from the second level: 8 + 3.
pub const SECOND_LEVEL: u64 = 11;

/// Cycles of the instruction in these bytes, its data apart.
pub fn cycles(bytes: &[u8]) -> u64 {
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    of_mnemonic(decoder.decode().mnemonic())
}

fn of_mnemonic(mnemonic: Mnemonic) -> u64 {
    use Mnemonic::{
        Addpd, Addps, Addsd, Addss, Addsubpd, Addsubps, Div, Divpd, Divps, Divsd, Divss, Fadd,
        Faddp, Fdiv, Fdivp, Fdivr, Fdivrp, Fiadd, Fidiv, Fidivr, Fimul, Fisub, Fisubr, Fmul, Fmulp,
        Fsqrt, Fsub, Fsubp, Fsubr, Fsubrp, Haddpd, Haddps, Hsubpd, Hsubps, Idiv, Imul, Mul, Mulpd,
        Mulps, Mulsd, Mulss, Mulx, Sqrtpd, Sqrtps, Sqrtsd, Sqrtss, Subpd, Subps, Subsd, Subss,
        Vaddpd, Vaddps, Vaddsd, Vaddss, Vdivpd, Vdivps, Vdivsd, Vdivss, Vmulpd, Vmulps, Vmulsd,
        Vmulss, Vsqrtpd, Vsqrtps, Vsqrtsd, Vsqrtss, Vsubpd, Vsubps, Vsubsd, Vsubss,
    };
    match mnemonic {
        Mul | Imul | Mulx => 3,
        Div | Idiv => 18,
        Addpd | Addps | Addsd | Addss | Addsubpd | Addsubps | Haddpd | Haddps | Hsubpd | Hsubps
        | Subpd | Subps | Subsd | Subss | Fadd | Faddp | Fiadd | Fsub | Fsubp | Fsubr | Fsubrp
        | Fisub | Fisubr | Vaddpd | Vaddps | Vaddsd | Vaddss | Vsubpd | Vsubps | Vsubsd
        | Vsubss => 3,
        Mulpd | Mulps | Mulsd | Mulss | Fmul | Fmulp | Fimul | Vmulpd | Vmulps | Vmulsd
        | Vmulss => 5,
        // The table has no square root: it is made like a quotient.
        Divpd | Divps | Divsd | Divss | Fdiv | Fdivp | Fdivr | Fdivrp | Fidiv | Fidivr | Fsqrt
        | Sqrtpd | Sqrtps | Sqrtsd | Sqrtss | Vdivpd | Vdivps | Vdivsd | Vdivss | Vsqrtpd
        | Vsqrtps | Vsqrtsd | Vsqrtss => 6,
        _ => 1,
    }
}

/// Instructions that are entered at the first and left after the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// How many.
    pub instructions: u64,
    /// Their cycles, data apart.
    pub cycles: u64,
    /// The lines that they lie in, in order.
    pub lines: Box<[u64]>,
}

impl Block {
    /// No instruction yet.
    pub fn builder() -> BlockBuilder {
        BlockBuilder { instructions: 0, cycles: 0, lines: Vec::new() }
    }
}

/// A block while it is read.
#[derive(Debug)]
pub struct BlockBuilder {
    instructions: u64,
    cycles: u64,
    lines: Vec<u64>,
}

impl BlockBuilder {
    /// Adds an instruction, which begins in the line `first` and ends in `last`. Returns the cycles
    /// of the block up to and with it.
    pub fn instruction(&mut self, bytes: &[u8], first: u64, last: u64) -> u64 {
        self.instructions += 1;
        self.cycles += cycles(bytes);
        for line in first..=last {
            // What is fetched from the line of the last fetch cannot miss.
            if self.lines.last() != Some(&line) {
                self.lines.push(line);
            }
        }
        self.cycles
    }

    /// The block.
    pub fn finish(self) -> Block {
        let lines = self.lines.into_boxed_slice();
        Block { instructions: self.instructions, cycles: self.cycles, lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_take_what_the_table_says() {
        let told: [(&[u8], u64); 9] = [
            (&[0x48, 0x01, 0xd8], 1),             // add rax, rbx
            (&[0x48, 0x0f, 0xaf, 0xc3], 3),       // imul rax, rbx
            (&[0x48, 0xf7, 0xf3], 18),            // div rbx
            (&[0xf2, 0x0f, 0x58, 0xc1], 3),       // addsd xmm0, xmm1
            (&[0xf3, 0x0f, 0x59, 0xc1], 5),       // mulss xmm0, xmm1
            (&[0x66, 0x0f, 0x5e, 0xc1], 6),       // divpd xmm0, xmm1
            (&[0xd8, 0xc1], 3),                   // fadd st, st(1)
            (&[0x8b, 0x44, 0x24, 0x08], 1),       // mov eax, [rsp + 8]
            (&[0xff, 0xff, 0xff, 0xff, 0xff], 1), // no instruction at all
        ];
        for (bytes, cycles) in told {
            assert_eq!(super::cycles(bytes), cycles, "{bytes:x?}");
        }
    }

    #[test]
    fn a_block_fetches_each_line_once() {
        let mut block = Block::builder();
        assert_eq!(block.instruction(&[0x90], 7, 7), 1);
        assert_eq!(block.instruction(&[0x48, 0xf7, 0xf3], 7, 8), 19);
        assert_eq!(block.instruction(&[0x90], 8, 8), 20);
        let block = block.finish();
        assert_eq!(block, Block { instructions: 3, cycles: 20, lines: [7, 8].into() });
    }
}
