//! QEMU's plugin interface, declared by hand: all unsafe code.
//!
//! Debian's `qemu-user` brings no header. The functions are looked up by name in the process that
//! loads the plugin, so this crate links without QEMU. They are those of version 1 of the interface
//! (QEMU 4.2 to 8.2), and of versions 2 to 5 (up to QEMU 10), which changed one of them. Which
//! version the plugin says it was made for is read from the environment, as QEMU reads it first.
#![allow(unsafe_code)]

use crate::core::Block;
use crate::options::Options;
use crate::tracer::Tracer;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::BufWriter;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

type Plugin = Tracer<BufWriter<File>>;

/// The exit code of a program that cannot be traced.
const REFUSED: c_int = 121;
/// The variable with the version that the plugin announces.
const VERSION_VARIABLE: &str = "OBLIVIO_QEMU_PLUGIN_VERSION";
/// From this version on, an instruction's bytes are copied.
const COPIES_BYTES: c_int = 3;
/// Bytes of the longest instruction.
const MOST_BYTES: usize = 15;
/// No register of the guest is looked at in a callback.
const NO_REGISTERS: c_int = 0;
/// Loads and stores. Asked for only one of them, QEMU 7.2 also calls for the other.
const BOTH: c_int = 3;

/// What QEMU reads before it calls anything.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name is QEMU's")]
static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// Runs when the plugin is loaded, before QEMU looks at the version.
#[used]
#[unsafe(link_section = ".init_array")]
static ANNOUNCE: extern "C" fn() = announce;

#[allow(clippy::disallowed_methods, reason = "QEMU hands over arguments after the version only")]
extern "C" fn announce() {
    let version = std::env::var(VERSION_VARIABLE).ok();
    if let Some(version) = version.and_then(|version| version.parse().ok()) {
        qemu_plugin_version.store(version, Ordering::Relaxed);
    }
}

/// The first fields of QEMU's `qemu_info_t`.
#[repr(C)]
struct Info {
    target_name: *const c_char,
    min_version: c_int,
    cur_version: c_int,
    system_emulation: bool,
}

/// A translated block of QEMU.
#[repr(C)]
struct Translated {
    _opaque: [u8; 0],
}

/// One of its instructions.
#[repr(C)]
struct Instruction {
    _opaque: [u8; 0],
}

type OnTranslation = extern "C" fn(u64, *mut Translated);
type OnBlock = extern "C" fn(c_uint, *mut c_void);
type OnData = extern "C" fn(c_uint, u32, u64, *mut c_void);
type OnProcessor = extern "C" fn(u64, c_uint);
type OnExit = extern "C" fn(u64, *mut c_void);
type OnCall = extern "C" fn(u64, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);

/// QEMU's functions.
struct Api {
    copies_bytes: bool,
    on_translation: unsafe extern "C" fn(u64, OnTranslation),
    on_processor: unsafe extern "C" fn(u64, OnProcessor),
    on_call: unsafe extern "C" fn(u64, OnCall),
    on_exit: unsafe extern "C" fn(u64, OnExit, *mut c_void),
    on_block: unsafe extern "C" fn(*mut Translated, OnBlock, c_int, *mut c_void),
    on_data: unsafe extern "C" fn(*mut Instruction, OnData, c_int, c_int, *mut c_void),
    instructions: unsafe extern "C" fn(*const Translated) -> usize,
    instruction: unsafe extern "C" fn(*const Translated, usize) -> *mut Instruction,
    /// Returns the bytes before version 3; copies them to the second argument from then on.
    bytes: unsafe extern "C" fn(*const Instruction, *mut u8, usize) -> *const u8,
    size: unsafe extern "C" fn(*const Instruction) -> usize,
    address: unsafe extern "C" fn(*const Instruction) -> u64,
    size_shift: unsafe extern "C" fn(u32) -> c_uint,
    is_store: unsafe extern "C" fn(u32) -> bool,
}

/// A function of the process, by its name.
///
/// # Safety
/// `F` is the type of a pointer to the function of that name.
unsafe fn function<F: Copy>(name: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: a name that ends with a zero byte; nothing is asked of it but to be looked up.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() {
        return Err(format!("this QEMU has no {}", name.to_string_lossy()));
    }
    // SAFETY: both are one pointer wide, and the caller vouches for the type.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

impl Api {
    fn find(version: c_int) -> Result<Self, String> {
        // SAFETY: the types above are those of QEMU's `qemu-plugin.h` for these names. Before
        // version 3, `insn_data` has only the first of three arguments; the others, in registers,
        // are not looked at.
        unsafe {
            Ok(Self {
                copies_bytes: version >= COPIES_BYTES,
                on_translation: function(c"qemu_plugin_register_vcpu_tb_trans_cb")?,
                on_processor: function(c"qemu_plugin_register_vcpu_init_cb")?,
                on_call: function(c"qemu_plugin_register_vcpu_syscall_cb")?,
                on_exit: function(c"qemu_plugin_register_atexit_cb")?,
                on_block: function(c"qemu_plugin_register_vcpu_tb_exec_cb")?,
                on_data: function(c"qemu_plugin_register_vcpu_mem_cb")?,
                instructions: function(c"qemu_plugin_tb_n_insns")?,
                instruction: function(c"qemu_plugin_tb_get_insn")?,
                bytes: function(c"qemu_plugin_insn_data")?,
                size: function(c"qemu_plugin_insn_size")?,
                address: function(c"qemu_plugin_insn_vaddr")?,
                size_shift: function(c"qemu_plugin_mem_size_shift")?,
                is_store: function(c"qemu_plugin_mem_is_store")?,
            })
        }
    }
}

static API: OnceLock<Api> = OnceLock::new();
/// The tracer, from [`qemu_plugin_install`] on; it is never freed.
static PLUGIN: AtomicPtr<Plugin> = AtomicPtr::new(std::ptr::null_mut());

#[inline]
fn plugin() -> &'static mut Plugin {
    // SAFETY: QEMU calls back only after `qemu_plugin_install` has set the pointer, to a box that
    // was leaked. It calls from the thread of the guest's only thread: a second one is refused
    // before it runs. No callback calls another, and each keeps the reference to its own end.
    unsafe { &mut *PLUGIN.load(Ordering::Relaxed) }
}

/// Called by QEMU once the plugin is loaded. Returns 0 if it is ready.
///
/// # Safety
/// As QEMU calls it: `info` is valid, and so are `count` texts of `arguments`.
#[unsafe(no_mangle)]
unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    info: *const Info,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let (info, arguments) = unsafe {
        let count = usize::try_from(count).unwrap_or(0);
        let text = |at| CStr::from_ptr(*arguments.add(at)).to_string_lossy().into_owned();
        (&*info, (0..count).map(text).collect::<Vec<_>>())
    };
    match install(id, info, &arguments) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("oblivio-tracer: {error}");
            1
        }
    }
}

fn install(id: u64, info: &Info, arguments: &[String]) -> Result<(), String> {
    // SAFETY: QEMU's own text.
    let target = unsafe { CStr::from_ptr(info.target_name) };
    if target != c"x86_64" || info.system_emulation {
        return Err("only programs for x86-64 in QEMU's user mode can be traced".into());
    }
    let api = Api::find(info.cur_version)?;
    let options = Options::parse(arguments.iter().map(String::as_str))?;
    let named = |error, path: &std::path::Path| format!("{}: {error}", path.display());
    let about = std::fs::read_to_string(&options.about).map_err(|it| named(it, &options.about))?;
    let about = options.about(&about)?;
    let out = File::create(&options.out).map_err(|error| named(error, &options.out))?;
    let out = BufWriter::with_capacity(1 << 20, out);
    let tracer = Tracer::new(out, about, options).map_err(|error| error.to_string())?;
    PLUGIN.store(Box::leak(Box::new(tracer)), Ordering::Relaxed);
    // SAFETY: the callbacks have the types that QEMU calls them by, and live as long as it does.
    unsafe {
        (api.on_translation)(id, translate);
        (api.on_processor)(id, processor);
        (api.on_call)(id, system_call);
        (api.on_exit)(id, program_ended, std::ptr::null_mut());
    }
    API.get_or_init(|| api);
    Ok(())
}

/// A block is translated: it will be counted, and its data seen, whenever it runs.
extern "C" fn translate(_: u64, translated: *mut Translated) {
    let Some(api) = API.get() else { return };
    let mut block = Block::builder();
    // SAFETY: QEMU's own pointers, which are valid in this callback. An instruction's bytes are
    // read or copied for their length. What is registered is a number, or a block that is never
    // freed, since QEMU does not say when it drops a translation.
    unsafe {
        for at in 0..(api.instructions)(translated) {
            let instruction = (api.instruction)(translated, at);
            let size = (api.size)(instruction);
            let mut copy = [0; MOST_BYTES];
            let long = size.min(MOST_BYTES);
            let held = (api.bytes)(instruction, copy.as_mut_ptr(), long);
            let bytes = match api.copies_bytes {
                true => &copy[..long],
                false => std::slice::from_raw_parts(held, long),
            };
            let address = (api.address)(instruction);
            let line = |address| plugin().line_of(address);
            let last = line(address + size.saturating_sub(1) as u64);
            let offset = block.instruction(bytes, line(address), last) as *mut c_void;
            (api.on_data)(instruction, data, NO_REGISTERS, BOTH, offset);
        }
        let block: *mut Block = Box::leak(Box::new(block.finish()));
        (api.on_block)(translated, run, NO_REGISTERS, block.cast());
    }
}

/// A block runs.
extern "C" fn run(_: c_uint, block: *mut c_void) {
    // SAFETY: registered in `translate`, never freed and never written to.
    let block = unsafe { &*block.cast::<Block>() };
    if !plugin().block(block) {
        finish();
        leave(0);
    }
}

/// An instruction loads or stores.
extern "C" fn data(_: c_uint, info: u32, address: u64, offset: *mut c_void) {
    let Some(api) = API.get() else { return };
    let plugin = plugin();
    // SAFETY: QEMU's own number.
    let writes = unsafe { (api.is_store)(info) };
    let mut bytes = 1;
    if plugin.may_cross(address) {
        // SAFETY: the same.
        bytes = 1 << unsafe { (api.size_shift)(info) };
    }
    plugin.data(offset as u64, address, bytes, writes);
}

/// A thread of the guest begins.
extern "C" fn processor(_: u64, number: c_uint) {
    if number > 0 {
        refuse("starts a thread");
    }
}

/// The guest asks its system for something.
extern "C" fn system_call(
    _: u64,
    _: c_uint,
    number: i64,
    flags: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
) {
    const THREAD: u64 = libc::CLONE_THREAD as u64;
    match number {
        libc::SYS_clone if flags & THREAD != 0 => refuse("starts a thread"),
        libc::SYS_clone | libc::SYS_fork | libc::SYS_vfork => refuse("starts a child"),
        libc::SYS_execve | libc::SYS_execveat => refuse("becomes another program"),
        _ => {}
    }
}

extern "C" fn program_ended(_: u64, _: *mut c_void) {
    finish();
}

fn finish() {
    if let Err(error) = plugin().finish() {
        eprintln!("oblivio-tracer: the trace cannot be written: {error}");
        leave(REFUSED);
    }
}

/// Ends the program, which one core with its own caches cannot run.
fn refuse(what: &str) -> ! {
    eprintln!("oblivio-tracer: the program {what}: only one thread of one process can be traced");
    leave(REFUSED)
}

/// Ends the process without the guest's or QEMU's own last words.
fn leave(code: c_int) -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(code) }
}
