//! Constructions of the papers that no product is made of, for their papers' figures. The
//! experiments are the program `oblivio-lab`.

pub mod pyramid_paper;
