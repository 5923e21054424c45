//! Boot methods: what is armed, taken back, and what is asked for before anything happens.

mod common;

use std::fs;
use std::path::Path;

use common::{Board, marker, package};
use klab_boot::{
    BootConfig, BootError, BootMethod, GrubOptions, Grubenv, HookOptions, Hooks, Kexec,
    KexecOptions, UbootOneShot, UbootOptions,
};

fn choice(board: &Board) -> Option<String> {
    let env = Grubenv::read(&board.path("boot/grub/grubenv")).expect("grubenv");
    assert_eq!(
        env.get("saved_entry"),
        Some("x y"),
        "other variables are kept"
    );
    env.get("next_entry").map(str::to_owned)
}

#[test]
fn grub_boots_the_candidate_once() {
    let board = Board::new();
    let method = board.grub(GrubOptions::default());
    method.preflight().expect("everything is there");
    let kernel = package(board.root.path(), "6.12.0", "A", &[]);
    let installed = method
        .install(&kernel.order, &kernel.path)
        .expect("installed");
    assert_eq!(choice(&board), None);
    method.arm_once(&installed, &marker()).expect("armed");
    assert_eq!(choice(&board).as_deref(), Some("klab-candidate"));
    let slot = &installed.slot;
    assert_eq!(
        board.read("boot/klab/candidate.cfg"),
        format!(
            "menuentry \"klab-candidate\" --id klab-candidate {{\n  \
             if linux /klab/{slot}/vmlinuz root=/dev/vda3 ro panic=10 {}; then\n    boot\n  fi\n  \
             echo \"klab: the candidate cannot be loaded, restarting\"\n  reboot\n}}\n",
            marker()
        )
    );
    method.arm_once(&installed, &marker()).expect("armed twice");
    method.disarm().expect("disarmed");
    assert_eq!(choice(&board).as_deref(), Some(""));
    method.disarm().expect("disarmed twice");
    assert_eq!(board.read("boot/grub/grub.cfg"), common::GRUB_CFG);
}

#[test]
fn uboot_boots_the_candidate_once() {
    let board = Board::new();
    board.put("boot/boot.scr", common::UBOOT_SCRIPT);
    let method = board.uboot(UbootOptions {
        device_tree: Some("/dtbs/x.dtb".to_owned()),
        ..UbootOptions::default()
    });
    method.preflight().expect("everything is there");
    let kernel = package(board.root.path(), "6.12.0", "A", &[]);
    let installed = method
        .install(&kernel.order, &kernel.path)
        .expect("installed");
    let next = board.path("boot/klab/next");
    assert!(!next.exists());
    method.arm_once(&installed, &marker()).expect("armed");
    assert!(next.exists());
    let slot = &installed.slot;
    assert_eq!(
        board.read("boot/klab/candidate.conf"),
        format!(
            "default klab-candidate\nlabel klab-candidate\n  kernel /klab/{slot}/vmlinuz\n  \
             fdt /dtbs/x.dtb\n  append root=/dev/vda3 ro panic=10 {}\n",
            marker()
        )
    );
    method.arm_once(&installed, &marker()).expect("armed twice");
    method.disarm().expect("disarmed");
    assert!(!next.exists());
    method.disarm().expect("disarmed twice");
    assert_eq!(board.read("boot/boot.scr"), common::UBOOT_SCRIPT);

    // Nothing is armed where the image is not the one that was installed.
    fs::write(&installed.image, "garbage").expect("written");
    let error = method.arm_once(&installed, &marker()).expect_err("damaged");
    assert!(matches!(error, BootError::Digest { .. }), "{error}");
    assert!(!next.exists());
}

#[test]
fn uboot_is_not_given_words_that_it_would_change() {
    let board = Board::new();
    let kernel = package(board.root.path(), "6.12.0", "A", &[]);
    for (cmdline, word) in [("a x$b", "x$b"), ("a\\ c", "a\\"), ("a b\nboot", "b\nboot")] {
        let method = board.uboot(UbootOptions {
            cmdline: Some(cmdline.to_owned()),
            ..UbootOptions::default()
        });
        let installed = method
            .install(&kernel.order, &kernel.path)
            .expect("installed");
        match method.arm_once(&installed, &marker()) {
            Err(BootError::Cmdline { word: found }) => assert_eq!(found, word),
            // A break is white space, and white space becomes a blank.
            Ok(()) if cmdline.contains('\n') => {
                let entry = board.read("boot/klab/candidate.conf");
                assert!(entry.contains("append a b boot panic=10"), "{entry}");
            }
            other => panic!("{cmdline:?}: {other:?}"),
        }
    }
}

#[test]
fn uboot_preflight_names_everything_that_is_missing() {
    let board = Board::new();
    let missing = |method: &UbootOneShot| match method.preflight() {
        Err(BootError::Preflight { missing, .. }) => missing,
        other => panic!("{other:?}"),
    };
    let method = board.uboot(UbootOptions {
        reboot: vec!["/no/such".to_owned()],
        ..UbootOptions::default()
    });
    let found = missing(&method);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("boot/boot.scr cannot be read: make it of configs/boot/uboot.cmd"));
    // A script of somebody else never takes the choice back.
    board.put("boot/boot.scr", "run distro_bootcmd\n");
    let found = missing(&method);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].contains("does not say `fatrm"), "{found:?}");
}

#[test]
fn a_damaged_image_is_never_armed() {
    let board = Board::new();
    let method = board.grub(GrubOptions::default());
    let kernel = package(board.root.path(), "6.12.0", "A", &[]);
    let installed = method
        .install(&kernel.order, &kernel.path)
        .expect("installed");
    fs::write(&installed.image, "garbage").expect("written");
    let error = method.arm_once(&installed, &marker()).expect_err("damaged");
    assert!(matches!(error, BootError::Digest { .. }), "{error}");
    assert_eq!(choice(&board), None);
}

#[test]
fn words_that_grub_would_change_are_refused() {
    let board = Board::new();
    let kernel = package(board.root.path(), "6.12.0", "A", &[]);
    for (cmdline, word) in [
        ("a \"b", Some("\"b")),
        ("x\\y", Some("x\\y")),
        ("a=$b;c", None),
    ] {
        let method = board.grub(GrubOptions {
            cmdline: Some(cmdline.to_owned()),
            ..GrubOptions::default()
        });
        let installed = method
            .install(&kernel.order, &kernel.path)
            .expect("installed");
        match (method.arm_once(&installed, &marker()), word) {
            (Err(BootError::Cmdline { word }), Some(expected)) => assert_eq!(word, expected),
            (Ok(()), None) => {
                assert!(
                    board
                        .read("boot/klab/candidate.cfg")
                        .contains("vmlinuz 'a=$b;c' panic")
                );
            }
            (other, _) => panic!("{cmdline}: {other:?}"),
        }
    }
}

#[test]
fn preflight_names_everything_that_is_missing() {
    let board = Board::new();
    board.put("boot/grub/grub.cfg", "menuentry x {}\n");
    fs::write(board.path("boot/grub/grubenv"), "nonsense").expect("file");
    let method = board.grub(GrubOptions {
        mkinitrd: vec!["/usr/lib/klab/mkinitrd".to_owned()],
        ..GrubOptions::default()
    });
    let Err(BootError::Preflight { missing, .. }) = method.preflight() else {
        panic!("nothing is missing");
    };
    let text = missing.join("\n");
    for word in [
        "mkinitrd",
        "GRUB Environment Block",
        "source /klab/candidate.cfg",
        "save_env",
    ] {
        assert!(text.contains(word), "{word} in:\n{text}");
    }
    assert_eq!(missing.len(), 4, "{text}");
}

#[test]
fn this_machine_is_not_rebooted_for_a_folder() {
    let board = Board::new();
    let grub = board.grub(GrubOptions::default());
    let kexec = Kexec::new(KexecOptions::default(), board.root.path());
    for done in [grub.reboot(), grub.restore(), kexec.restore()] {
        assert!(
            matches!(done, Err(BootError::ForeignSysroot { .. })),
            "{done:?}"
        );
    }
    assert!(matches!(kexec.reboot(), Err(BootError::NotArmed)));
    let command = board.script("reboot", "echo down > \"$0.log\"");
    board
        .grub(GrubOptions {
            reboot: command,
            ..GrubOptions::default()
        })
        .restore()
        .expect("down");
    assert_eq!(board.read("reboot.log"), "down\n");
}

#[test]
fn a_watchdog_makes_hangs_survivable() {
    let board = Board::new();
    let method = board.grub(GrubOptions::default());
    assert_eq!(
        method.capabilities().words(),
        ["survives-panic", "clears-itself", "marks-cmdline"]
    );
    // It hangs when the kernel does.
    board.put(
        "sys/class/watchdog/watchdog0/identity",
        "Software Watchdog\n",
    );
    assert!(!method.capabilities().survives_hang);
    board.put("sys/class/watchdog/watchdog1/identity", "i6300ESB");
    assert!(method.capabilities().survives_hang);
}

#[test]
fn kexec_loads_with_the_older_call_if_need_be() {
    let board = Board::new();
    let log = board.path("log");
    board.put(
        "kexec",
        &format!(
            "#!/bin/sh\necho \"$@\" >> {}\n[ \"$1\" != -s ]\n",
            log.display()
        ),
    );
    let tool = board.path("kexec");
    let mut mode = fs::metadata(&tool).expect("tool").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    fs::set_permissions(&tool, mode).expect("mode");
    let options = KexecOptions {
        tool: tool.display().to_string(),
        folder: "/k".into(),
        ..Default::default()
    };
    let method = Kexec::new(options, board.root.path());
    let kernel = package(board.root.path(), "6.12.0", "A", &[]);
    let installed = method
        .install(&kernel.order, &kernel.path)
        .expect("installed");
    method.arm_once(&installed, &marker()).expect("armed");
    board.put("sys/kernel/kexec_loaded", "1\n");
    method.reboot().expect("started");
    method.disarm().expect("disarmed");
    let load = format!(
        "-l {} --command-line=root=/dev/vda3 ro panic=10 {}",
        installed.image.display(),
        marker()
    );
    assert_eq!(board.read("log"), format!("-s {load}\n-c {load}\n-e\n-u\n"));
}

#[test]
fn hooks_get_the_kernel_and_the_attempt() {
    let board = Board::new();
    let script = board.script("hook", "echo \"$@\" >> \"$0.log\"");
    let hook = |words: &[&str]| [&script[..], &words.map_owned()].concat();
    let options = HookOptions {
        folder: "/k".into(),
        preflight: hook(&["preflight"]),
        install: hook(&["install", "{kernel}", "{release}"]),
        arm: hook(&["arm", "{run}/{attempt}", "{marker}", "[{initrd}]"]),
        disarm: hook(&["disarm"]),
        reboot: hook(&["reboot"]),
        keep: 3,
        ..HookOptions::default()
    };
    let method = BootConfig::Hooks(options)
        .build(board.root.path())
        .expect("method");
    method.preflight().expect("ready");
    let kernel = package(board.root.path(), "6.12.0", "A", &[]);
    let installed = method
        .install(&kernel.order, &kernel.path)
        .expect("installed");
    method.arm_once(&installed, &marker()).expect("armed");
    method.restore().expect("restored");
    let m = marker();
    assert_eq!(
        board.read("hook.log"),
        format!(
            "preflight\ninstall {} 6.12.0\narm {}/2 {m} []\ndisarm\nreboot\n",
            installed.image.display(),
            m.run
        )
    );
}

trait MapOwned {
    fn map_owned(&self) -> Vec<String>;
}

impl MapOwned for [&str] {
    fn map_owned(&self) -> Vec<String> {
        self.iter().map(|&word| word.to_owned()).collect()
    }
}

#[test]
fn hooks_that_cannot_work_are_refused_at_once() {
    let good = HookOptions {
        folder: "/k".into(),
        arm: vec!["arm".to_owned()],
        reboot: vec!["reboot".to_owned()],
        ..HookOptions::default()
    };
    let with = |change: fn(&mut HookOptions)| {
        let mut options = good.clone();
        change(&mut options);
        Hooks::new(options, Path::new("/"))
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert_eq!(with(|_| {}), Ok(()));
    let error = |change| with(change).expect_err("refused");
    assert!(error(|o| o.arm.clear()).contains("`arm`"));
    assert!(error(|o| o.reboot.push("{run}".to_owned())).contains("{run} has no value"));
    assert!(error(|o| o.folder = "k".into()).contains("absolute"));
}

#[test]
fn configurations_are_strict() {
    let parse = serde_json::from_str::<BootConfig>;
    assert_eq!(
        parse(r#"{"method": "grub"}"#).expect("grub"),
        BootConfig::Grub(GrubOptions::default())
    );
    let kexec = parse(r#"{"method": "kexec", "mkinitrd": ["mk"], "keep": 1}"#).expect("kexec");
    let BootConfig::Kexec(options) = &kexec else {
        panic!("{kexec:?}")
    };
    assert_eq!((options.keep, options.mkinitrd.len()), (1, 1));
    let text = serde_json::to_string(&kexec).expect("JSON");
    assert_eq!(parse(&text).expect("again"), kexec);
    assert_eq!(
        parse(r#"{"method": "uboot"}"#).expect("uboot"),
        BootConfig::Uboot(UbootOptions::default())
    );
    for bad in [
        r#"{}"#,
        r#"{"method": "lilo"}"#,
        r#"{"method": "grub", "menu_id": "x"}"#,
        r#"{"method": "hooks", "folder": "/k"}"#,
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}
