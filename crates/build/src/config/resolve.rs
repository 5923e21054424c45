//! From a request to the final configuration, by `make` in a folder of its own.

use std::collections::BTreeMap;
use std::fs;

use super::dotconfig::{DotConfig, Value, line, symbol_of};
use super::fragment::{Fragment, Setting};
use super::kconfig::Kconfig;
use super::request::{BaseConfig, ConfigRequest};
use super::untaken::{Untaken, Why};
use crate::make::Make;
use crate::{BuildError, Stage, Watcher, files};

/// The fragment that is put over everything.
const ALWAYS: &str = include_str!("always.config");

/// A final configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedConfig {
    /// The text of the `.config`.
    pub text: String,
    /// What it says.
    pub config: DotConfig,
    /// Settings that did not take; the request allowed them.
    pub untaken: Vec<Untaken>,
}

/// The mark of a configuration that is being made. What a killed `make` left of its helper
/// programs cannot be trusted, and all of them are built in seconds.
const MARK: &str = ".klab-configuring";

/// What is needed to make a configuration.
pub(crate) struct Configure<'a> {
    /// `make` of the source, writing into a folder that is used for configurations only, so
    /// that the folder of a build sees nothing but a changed `.config`.
    pub(crate) make: &'a Make<'a>,
    pub(crate) request: &'a ConfigRequest,
}

/// Makes the final configuration.
pub(crate) fn configure(
    how: &Configure<'_>,
    watcher: &mut Watcher<'_>,
) -> Result<ResolvedConfig, BuildError> {
    watcher.stage(Stage::Configuring)?;
    let mark = how.make.out.join(MARK);
    if mark.exists() {
        files::remove(how.make.out)?;
    }
    files::make_folder(how.make.out)?;
    files::write_atomic(&mark, b"")?;
    let always = Fragment::parse("klab", ALWAYS)?;
    let request = how.request;
    let wanted = wanted(request.fragments.iter().chain([&always]));
    let path = how.make.out.join(".config");
    let base = match &request.base {
        BaseConfig::Target(target) => {
            how.make.quiet(&[target.as_str()], watcher)?;
            fs::read_to_string(&path).map_err(BuildError::io("read", &path))?
        }
        BaseConfig::Text { text, .. } => text.clone(),
    };
    how.make.arch().accepts(request.base.name(), &base)?;
    fs::write(&path, merged(&base, &wanted)).map_err(BuildError::io("write", &path))?;
    how.make.quiet(&["olddefconfig"], watcher)?;
    files::remove(&mark)?;
    let text = fs::read_to_string(&path).map_err(BuildError::io("read", &path))?;
    let config = DotConfig::parse(&text);
    let untaken = untaken(how, &wanted, &config)?;
    if !untaken.is_empty() && !request.allow_untaken {
        return Err(BuildError::Untaken(untaken));
    }
    Ok(ResolvedConfig {
        text,
        config,
        untaken,
    })
}

/// A setting and the fragment that it comes from.
struct Wanted<'a> {
    fragment: &'a str,
    setting: &'a Setting,
    /// Its place among all settings: of rivals in a choice the later one counts.
    rank: usize,
}

/// The last setting of each symbol.
fn wanted<'a>(fragments: impl Iterator<Item = &'a Fragment>) -> BTreeMap<&'a str, Wanted<'a>> {
    let mut all = BTreeMap::new();
    let settings = fragments.flat_map(|f| f.settings.iter().map(move |s| (f.name(), s)));
    for (rank, (fragment, setting)) in settings.enumerate() {
        let wanted = Wanted {
            fragment,
            setting,
            rank,
        };
        all.insert(setting.symbol.as_str(), wanted);
    }
    all
}

/// The base without what is set anew, then the settings in their order: where two members of a
/// choice are on, Kconfig takes the later one.
fn merged(base: &str, wanted: &BTreeMap<&str, Wanted<'_>>) -> String {
    let mut text = String::with_capacity(base.len());
    for one in base.lines() {
        if symbol_of(one).is_none_or(|symbol| !wanted.contains_key(symbol)) {
            text += one;
            text.push('\n');
        }
    }
    let mut settings: Vec<&Wanted<'_>> = wanted.values().collect();
    settings.sort_by_key(|wanted| wanted.rank);
    for wanted in settings {
        text += &line(&wanted.setting.symbol, &wanted.setting.value);
    }
    text
}

fn untaken(
    how: &Configure<'_>,
    wanted: &BTreeMap<&str, Wanted<'_>>,
    config: &DotConfig,
) -> Result<Vec<Untaken>, BuildError> {
    let all_took = wanted
        .values()
        .all(|wanted| took(&wanted.setting.value, config.get(&wanted.setting.symbol)));
    if all_took {
        return Ok(Vec::new());
    }
    let kconfig = Kconfig::read(how.make.src, how.make.arch().folder())?;
    Ok(explained(wanted, config, &kconfig))
}

/// The settings that did not take, in their order, each with its reason. One that lost to a
/// later setting of the same choice is no surprise and left out.
fn explained(
    wanted: &BTreeMap<&str, Wanted<'_>>,
    config: &DotConfig,
    kconfig: &Kconfig,
) -> Vec<Untaken> {
    let overruled = |lost: &Wanted<'_>| {
        let later = |name: &str| wanted.get(name).is_some_and(|w| w.rank > lost.rank);
        let rivals = kconfig.rivals(&lost.setting.symbol);
        rivals.iter().any(|name| later(name) && config.is_on(name))
    };
    let mut lost: Vec<&Wanted<'_>> = wanted
        .values()
        .filter(|wanted| !took(&wanted.setting.value, config.get(&wanted.setting.symbol)))
        .filter(|wanted| !overruled(wanted))
        .collect();
    lost.sort_by_key(|wanted| wanted.rank);
    let told = |wanted: &Wanted<'_>| {
        let Setting {
            symbol,
            value,
            line,
        } = wanted.setting;
        Untaken {
            symbol: symbol.clone(),
            fragment: wanted.fragment.to_owned(),
            line: *line,
            wanted: value.clone(),
            got: config.get(symbol).clone(),
            why: Why::find(symbol, value, kconfig, config),
        }
    };
    lost.into_iter().map(told).collect()
}

/// Whether a setting is there. An absent text is an empty one.
fn took(wanted: &Value, got: &Value) -> bool {
    wanted == got || (*got == Value::No && *wanted == Value::Text("\"\"".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_always_set_is_a_fragment() {
        let always = Fragment::parse("klab", ALWAYS).expect("a fragment");
        // Trees differ in what they have: only settings that an absent symbol fulfils.
        for setting in &always.settings {
            assert!(took(&setting.value, &Value::No), "{setting:?}");
        }
    }

    #[test]
    fn a_setting_that_a_later_one_of_its_choice_replaced_is_no_surprise() {
        let mut kconfig = Kconfig::default();
        kconfig.add("choice\nconfig P\n\tbool \"p\"\nconfig RT\n\tbool \"rt\"\nendchoice\n");
        let fragment = |text| Fragment::parse("f", text).expect("fragment");
        let rt = DotConfig::parse("CONFIG_RT=y\n");
        let (p_first, rt_first) = (
            fragment("CONFIG_P=y\nCONFIG_RT=y\n"),
            fragment("CONFIG_RT=y\nCONFIG_P=y\n"),
        );
        assert_eq!(
            explained(&wanted([&p_first].into_iter()), &rt, &kconfig),
            []
        );
        let told = explained(&wanted([&rt_first].into_iter()), &rt, &kconfig);
        assert_eq!(told.len(), 1);
        assert_eq!(
            (told[0].symbol.as_str(), &told[0].why),
            ("P", &Why::Rival("RT".to_owned()))
        );
    }

    #[test]
    fn later_settings_stand_last_and_replace_the_base() {
        let one = Fragment::parse("1", "CONFIG_B=y\nCONFIG_Z=y\n").expect("fragment");
        let two = Fragment::parse("2", "CONFIG_A=y\nCONFIG_B=n\n").expect("fragment");
        let wanted = wanted([&one, &two].into_iter());
        let base = "# head\nCONFIG_A=m\n# CONFIG_B is not set\nCONFIG_C=y\n";
        assert_eq!(
            merged(base, &wanted),
            "# head\nCONFIG_C=y\nCONFIG_Z=y\nCONFIG_A=y\n# CONFIG_B is not set\n"
        );
    }
}
