//! Runs a test script (`.wast`) on an engine and says what came of it.

use std::collections::HashMap;

use wasmtime::component::Component;
use wasmtime::{
    Engine, Extern, Func, FuncType, Global, GlobalType, Instance, Linker, Memory, MemoryType, Module, Mutability, Ref,
    RefType, Store, Table, TableType, Trap, Val, ValType,
};
use wast::core::{NanPattern, V128Pattern, WastArgCore, WastRetCore};
use wast::lexer::Lexer;
use wast::parser::{self, ParseBuffer};
use wast::token::Id;
use wast::{QuoteWat, Wast, WastArg, WastDirective, WastExecute, WastInvoke, WastRet, Wat};

/// What came of one script.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Directives that went as the script says.
    pub(crate) passed: usize,
    /// Directives about modules that the engine's settings refuse.
    pub(crate) off: usize,
    /// Why the first of them was refused.
    pub(crate) reason: Option<String>,
    /// What went otherwise.
    pub(crate) failed: Vec<String>,
}

/// How one directive went.
enum Outcome {
    Passed,
    Off(String),
    Failed(String),
}

/// Runs a script.
pub(crate) fn run(engine: &Engine, source: &str) -> Report {
    let mut lexer = Lexer::new(source);
    lexer.allow_confusing_unicode(true);
    let buffer = ParseBuffer::new_with_lexer(lexer).unwrap();
    let script = match parser::parse::<Wast<'_>>(&buffer) {
        Ok(script) => script,
        Err(error) => return Report { failed: vec![error.message()], ..Report::default() },
    };
    let mut runner = Runner::new(engine);
    let mut report = Report::default();
    for directive in script.directives {
        let (line, _) = directive.span().linecol_in(source);
        match runner.step(directive) {
            Outcome::Passed => report.passed += 1,
            Outcome::Off(reason) => {
                report.off += 1;
                report.reason.get_or_insert(reason);
            }
            Outcome::Failed(reason) => report.failed.push(format!("line {}: {reason}", line + 1)),
        }
    }
    report
}

struct Runner<'e> {
    engine: &'e Engine,
    store: Store<()>,
    linker: Linker<()>,
    current: Option<Instance>,
    instances: HashMap<String, Instance>,
    modules: HashMap<String, Module>,
    last_module: Option<Module>,
}

impl<'e> Runner<'e> {
    fn new(engine: &'e Engine) -> Self {
        let mut store = Store::new(engine, ());
        store.set_fuel(u64::MAX).unwrap();
        store.set_epoch_deadline(u64::MAX / 2);
        let mut linker = Linker::new(engine);
        linker.allow_shadowing(true);
        spectest(&mut linker, &mut store);
        Self {
            engine,
            store,
            linker,
            current: None,
            instances: HashMap::new(),
            modules: HashMap::new(),
            last_module: None,
        }
    }

    fn step(&mut self, directive: WastDirective<'_>) -> Outcome {
        match directive {
            WastDirective::Module(module) => self.define(module, Instantiate::Now),
            WastDirective::ModuleDefinition(module) => self.define(module, Instantiate::Later),
            WastDirective::ModuleInstance { instance, module, .. } => {
                let found = match module {
                    Some(id) => self.modules.get(id.name()).cloned(),
                    None => self.last_module.clone(),
                };
                let Some(module) = found else { return Outcome::Off("its module is off".to_owned()) };
                match self.linker.instantiate(&mut self.store, &module) {
                    Ok(made) => self.remember(instance, made),
                    Err(error) => Outcome::Failed(format!("{error:#}")),
                }
            }
            WastDirective::AssertMalformed { module, .. }
            | WastDirective::AssertInvalid { module, .. }
            | WastDirective::AssertInvalidCustom { module, .. } => self.refuses(module),
            WastDirective::AssertMalformedCustom { .. } => Outcome::Off("custom sections are not read".to_owned()),
            WastDirective::Register { name, module, .. } => {
                let Some(instance) = self.instance(module) else { return Outcome::Off("its module is off".to_owned()) };
                match self.linker.instance(&mut self.store, name, instance) {
                    Ok(_) => Outcome::Passed,
                    Err(error) => Outcome::Failed(format!("{error:#}")),
                }
            }
            WastDirective::Invoke(call) => match self.invoke(&call) {
                Called::Gave(_) => Outcome::Passed,
                Called::Trapped(error) => Outcome::Failed(format!("{error:#}")),
                Called::Off(reason) => Outcome::Off(reason),
            },
            WastDirective::AssertReturn { exec, results, .. } => match self.execute(exec) {
                Called::Gave(values) => compare(&values, &results),
                Called::Trapped(error) => Outcome::Failed(format!("{error:#}")),
                Called::Off(reason) => Outcome::Off(reason),
            },
            WastDirective::AssertTrap { exec, message, .. } => self.traps(exec, message),
            WastDirective::AssertExhaustion { call, message, .. } => self.traps(WastExecute::Invoke(call), message),
            WastDirective::AssertUnlinkable { mut module, .. } => match self.compile(module.encode()) {
                Ok(module) => match self.linker.instantiate(&mut self.store, &module) {
                    Ok(_) => Outcome::Failed("it was linked".to_owned()),
                    Err(_) => Outcome::Passed,
                },
                Err(reason) => Outcome::Off(reason),
            },
            WastDirective::AssertException { .. } => Outcome::Off("exceptions are off".to_owned()),
            WastDirective::AssertSuspension { .. } => Outcome::Off("stack switching is off".to_owned()),
            WastDirective::Thread(_) | WastDirective::Wait { .. } => Outcome::Off("threads are off".to_owned()),
        }
    }

    /// Compiles a module that is valid by the specification; what our settings refuse is off, and so is what follows from it.
    fn define(&mut self, mut module: QuoteWat<'_>, when: Instantiate) -> Outcome {
        let name = module.name();
        if is_component(&module) {
            return match module
                .encode()
                .map_err(|error| error.to_string())
                .and_then(|wasm| Component::from_binary(self.engine, &wasm).map_err(|error| format!("{error:#}")))
            {
                Ok(_) => Outcome::Passed,
                Err(reason) => Outcome::Off(reason),
            };
        }
        self.current = None;
        if let Some(id) = name {
            self.instances.remove(id.name());
            self.modules.remove(id.name());
        }
        self.last_module = None;
        let module = match self.compile(module.encode()) {
            Ok(module) => module,
            Err(reason) => return Outcome::Off(reason),
        };
        if let Some(id) = name {
            self.modules.insert(id.name().to_owned(), module.clone());
        }
        self.last_module = Some(module.clone());
        if when == Instantiate::Later {
            return Outcome::Passed;
        }
        match self.linker.instantiate(&mut self.store, &module) {
            Ok(instance) => self.remember(name, instance),
            // It imports from a module that is off.
            Err(error) => Outcome::Off(format!("{error:#}")),
        }
    }

    fn remember(&mut self, name: Option<Id<'_>>, instance: Instance) -> Outcome {
        if let Some(id) = name {
            self.instances.insert(id.name().to_owned(), instance);
        }
        self.current = Some(instance);
        Outcome::Passed
    }

    fn compile(&self, encoded: Result<Vec<u8>, wast::Error>) -> Result<Module, String> {
        let wasm = encoded.map_err(|error| error.to_string())?;
        Module::from_binary(self.engine, &wasm).map_err(|error| format!("{error:#}"))
    }

    /// A module that is wrong: its text cannot be read, or its bytes are refused.
    fn refuses(&self, mut module: QuoteWat<'_>) -> Outcome {
        let component = is_component(&module);
        let Ok(wasm) = module.encode() else { return Outcome::Passed };
        let taken = if component {
            Component::from_binary(self.engine, &wasm).is_ok()
        } else {
            Module::validate(self.engine, &wasm).is_ok()
        };
        if taken { Outcome::Failed("a wrong module was taken".to_owned()) } else { Outcome::Passed }
    }

    fn instance(&self, name: Option<Id<'_>>) -> Option<Instance> {
        match name {
            Some(id) => self.instances.get(id.name()).copied(),
            None => self.current,
        }
    }

    fn execute(&mut self, exec: WastExecute<'_>) -> Called {
        match exec {
            WastExecute::Invoke(call) => self.invoke(&call),
            WastExecute::Get { module, global, .. } => {
                let Some(instance) = self.instance(module) else { return Called::Off("its module is off".to_owned()) };
                match instance.get_global(&mut self.store, global) {
                    Some(global) => Called::Gave(vec![global.get(&mut self.store)]),
                    None => Called::Trapped(wasmtime::Error::msg("there is no such global")),
                }
            }
            WastExecute::Wat(mut wat) => match self.compile(encode(&mut wat)) {
                Ok(module) => match self.linker.instantiate(&mut self.store, &module) {
                    Ok(_) => Called::Gave(Vec::new()),
                    Err(error) => Called::Trapped(error),
                },
                Err(reason) => Called::Off(reason),
            },
        }
    }

    fn invoke(&mut self, call: &WastInvoke<'_>) -> Called {
        let Some(instance) = self.instance(call.module) else { return Called::Off("its module is off".to_owned()) };
        let Some(function) = instance.get_func(&mut self.store, call.name) else {
            return Called::Trapped(wasmtime::Error::msg("there is no such function"));
        };
        let mut arguments = Vec::new();
        for argument in &call.args {
            match value(argument) {
                Some(value) => arguments.push(value),
                None => return Called::Off("references to the host are off".to_owned()),
            }
        }
        let mut results = vec![Val::I32(0); function.ty(&self.store).results().len()];
        match function.call(&mut self.store, &arguments, &mut results) {
            Ok(()) => Called::Gave(results),
            Err(error) => Called::Trapped(error),
        }
    }

    fn traps(&mut self, exec: WastExecute<'_>, message: &str) -> Outcome {
        match self.execute(exec) {
            Called::Gave(_) => Outcome::Failed(format!("no trap, expected: {message}")),
            Called::Trapped(error) if error.is::<Trap>() => Outcome::Passed,
            Called::Trapped(error) => Outcome::Failed(format!("{error:#}, expected: {message}")),
            Called::Off(reason) => Outcome::Off(reason),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Instantiate {
    Now,
    Later,
}

enum Called {
    Gave(Vec<Val>),
    Trapped(wasmtime::Error),
    Off(String),
}

fn encode(wat: &mut Wat<'_>) -> Result<Vec<u8>, wast::Error> {
    wat.encode()
}

fn is_component(module: &QuoteWat<'_>) -> bool {
    matches!(module, QuoteWat::QuoteComponent(..) | QuoteWat::Wat(Wat::Component(_)))
}

fn value(argument: &WastArg<'_>) -> Option<Val> {
    let WastArg::Core(argument) = argument else { return None };
    Some(match argument {
        WastArgCore::I32(number) => Val::I32(*number),
        WastArgCore::I64(number) => Val::I64(*number),
        WastArgCore::F32(number) => Val::F32(number.bits),
        WastArgCore::F64(number) => Val::F64(number.bits),
        WastArgCore::V128(number) => Val::V128(u128::from_le_bytes(number.to_le_bytes()).into()),
        WastArgCore::RefNull(wast::core::HeapType::Abstract { ty: wast::core::AbstractHeapType::Func, .. }) => {
            Val::FuncRef(None)
        }
        _ => return None,
    })
}

fn compare(values: &[Val], expected: &[WastRet<'_>]) -> Outcome {
    let same = values.len() == expected.len()
        && values.iter().zip(expected).all(|(value, expected)| match expected {
            WastRet::Core(expected) => matches(value, expected),
            _ => false,
        });
    if same { Outcome::Passed } else { Outcome::Failed(format!("{values:?}, expected {expected:?}")) }
}

fn matches(value: &Val, expected: &WastRetCore<'_>) -> bool {
    match (value, expected) {
        (_, WastRetCore::Either(choices)) => choices.iter().any(|choice| matches(value, choice)),
        (Val::I32(value), WastRetCore::I32(expected)) => value == expected,
        (Val::I64(value), WastRetCore::I64(expected)) => value == expected,
        (Val::F32(bits), WastRetCore::F32(expected)) => f32_matches(*bits, expected),
        (Val::F64(bits), WastRetCore::F64(expected)) => f64_matches(*bits, expected),
        (Val::V128(value), WastRetCore::V128(expected)) => v128_matches(value.as_u128(), expected),
        (Val::FuncRef(value), WastRetCore::RefNull(_)) => value.is_none(),
        (Val::FuncRef(value), WastRetCore::RefFunc(_)) => value.is_some(),
        _ => false,
    }
}

fn f32_matches(bits: u32, expected: &NanPattern<wast::token::F32>) -> bool {
    match expected {
        NanPattern::CanonicalNan => bits & 0x7fff_ffff == 0x7fc0_0000,
        NanPattern::ArithmeticNan => bits & 0x7fc0_0000 == 0x7fc0_0000,
        NanPattern::Value(value) => bits == value.bits,
    }
}

fn f64_matches(bits: u64, expected: &NanPattern<wast::token::F64>) -> bool {
    match expected {
        NanPattern::CanonicalNan => bits & 0x7fff_ffff_ffff_ffff == 0x7ff8_0000_0000_0000,
        NanPattern::ArithmeticNan => bits & 0x7ff8_0000_0000_0000 == 0x7ff8_0000_0000_0000,
        NanPattern::Value(value) => bits == value.bits,
    }
}

fn v128_matches(value: u128, expected: &V128Pattern) -> bool {
    let lane = |index: usize, bits: usize| (value >> (index * bits)) & ((1 << bits) - 1);
    match expected {
        V128Pattern::I8x16(lanes) => (0..16).all(|i| lane(i, 8) == u128::from(lanes[i].cast_unsigned())),
        V128Pattern::I16x8(lanes) => (0..8).all(|i| lane(i, 16) == u128::from(lanes[i].cast_unsigned())),
        V128Pattern::I32x4(lanes) => (0..4).all(|i| lane(i, 32) == u128::from(lanes[i].cast_unsigned())),
        V128Pattern::I64x2(lanes) => (0..2).all(|i| lane(i, 64) == u128::from(lanes[i].cast_unsigned())),
        V128Pattern::F32x4(lanes) => (0..4).all(|i| f32_matches(u32::try_from(lane(i, 32)).unwrap(), &lanes[i])),
        V128Pattern::F64x2(lanes) => (0..2).all(|i| f64_matches(u64::try_from(lane(i, 64)).unwrap(), &lanes[i])),
    }
}

/// The module that all scripts may import from.
fn spectest(linker: &mut Linker<()>, store: &mut Store<()>) {
    let engine = store.engine().clone();
    let prints: [(&str, &[ValType]); 7] = [
        ("print", &[]),
        ("print_i32", &[ValType::I32]),
        ("print_i64", &[ValType::I64]),
        ("print_f32", &[ValType::F32]),
        ("print_f64", &[ValType::F64]),
        ("print_i32_f32", &[ValType::I32, ValType::F32]),
        ("print_f64_f64", &[ValType::F64, ValType::F64]),
    ];
    for (name, parameters) in prints {
        let ty = FuncType::new(&engine, parameters.iter().cloned(), []);
        let print = Func::new(&mut *store, ty, |_, _, _| Ok(()));
        linker.define(&mut *store, "spectest", name, print).unwrap();
    }
    for (name, value) in [
        ("global_i32", Val::I32(666)),
        ("global_i64", Val::I64(666)),
        ("global_f32", Val::F32(666.6_f32.to_bits())),
        ("global_f64", Val::F64(666.6_f64.to_bits())),
    ] {
        let ty = GlobalType::new(value.ty(&*store).unwrap(), Mutability::Const);
        let global = Global::new(&mut *store, ty, value).unwrap();
        linker.define(&mut *store, "spectest", name, global).unwrap();
    }
    let table = Table::new(&mut *store, TableType::new(RefType::FUNCREF, 10, Some(20)), Ref::Func(None)).unwrap();
    linker.define(&mut *store, "spectest", "table", table).unwrap();
    let memory = Memory::new(&mut *store, MemoryType::new(1, Some(2))).unwrap();
    linker.define(&mut *store, "spectest", "memory", Extern::Memory(memory)).unwrap();
}
