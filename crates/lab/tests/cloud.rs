//! Every experiment of the cloud paper runs in its quick form.

use std::process::Command;

#[test]
fn quick_forms_run() {
    for part in ["figure4", "table1", "figure5", "figure6", "figure7", "figure8", "total"] {
        let lab = env!("CARGO_BIN_EXE_oblivio-lab");
        let output = Command::new(lab).args(["cloud", part, "--quick"]).output().unwrap();
        let (told, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{part}: {errors}");
        assert!(told.contains('|'), "{part} printed no table");
    }
}
