//! The components, as they are after reading. Nothing here is made by deserialising: `read` makes them and checks them.

/// One node of the tree.
#[derive(Debug, Clone, PartialEq)]
pub enum Component {
    /// A piece of plain text.
    Text(Text),
    /// CommonMark with tables, without HTML.
    Markdown(Markdown),
    /// Other components, one below the other.
    List(List),
    /// Rows and columns.
    Table(Table),
    /// Fields for a person to fill in.
    Form(Form),
    /// Numbers as bars or lines.
    Chart(Chart),
    /// A picture that comes with the document.
    Image(Image),
    /// How far something is.
    Progress(Progress),
    /// Source text.
    Code(Code),
    /// A unified diff.
    Diff(Diff),
    /// Questions of this session that wait for a person.
    Approval(Approval),
}

/// See [`Component::Text`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// The text.
    pub text: String,
    /// How it looks.
    pub style: TextStyle,
}

/// How a text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TextStyle {
    /// Running text.
    #[default]
    Body,
    /// A heading.
    Heading,
    /// Something beside.
    Note,
    /// Something that went wrong.
    Error,
}

/// See [`Component::Markdown`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markdown {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// The source.
    pub text: String,
}

/// See [`Component::List`].
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// How items are marked.
    pub style: ListStyle,
    /// The items.
    pub items: Vec<Component>,
}

/// How items of a list are marked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListStyle {
    /// Not at all.
    #[default]
    Plain,
    /// With bullets.
    Bullets,
    /// With numbers.
    Numbers,
}

/// See [`Component::Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// What it shows.
    pub caption: Option<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows, each as long as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// One cell of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// Nothing.
    Empty,
    /// Text.
    Text(String),
    /// A number as it was written.
    Number(String),
}

/// See [`Component::Form`].
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// Its id.
    pub id: String,
    /// What it is for.
    pub title: Option<String>,
    /// What the button says.
    pub submit: Option<String>,
    /// The fields.
    pub fields: Vec<Field>,
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name among the values.
    pub name: String,
    /// What it asks for.
    pub label: String,
    /// A sentence that helps.
    pub help: Option<String>,
    /// Whether it has to be filled in.
    pub required: bool,
    /// What is entered.
    pub kind: FieldKind,
}

/// What is entered into a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// One line or more of text.
    Text {
        /// What stands there at first.
        value: Option<String>,
        /// Most bytes.
        max_length: Option<usize>,
    },
    /// An address for mail.
    Email {
        /// What stands there at first.
        value: Option<String>,
    },
    /// A number.
    Number {
        /// What stands there at first.
        value: Option<f64>,
        /// The least.
        min: Option<f64>,
        /// The most.
        max: Option<f64>,
    },
    /// One of several.
    Select {
        /// Which is chosen at first.
        value: Option<String>,
        /// What there is to choose from.
        options: Vec<Choice>,
    },
    /// Yes or no.
    Checkbox {
        /// Whether it is ticked at first.
        value: bool,
    },
}

/// One option of a selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its value: a plain name, because it becomes part of what the person says.
    pub value: String,
    /// What the person reads.
    pub label: String,
}

/// See [`Component::Chart`].
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// How it is drawn.
    pub kind: ChartKind,
    /// What it shows.
    pub title: Option<String>,
    /// Names of the points.
    pub labels: Vec<String>,
    /// The numbers, each as long as there are labels.
    pub series: Vec<Series>,
}

/// How a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartKind {
    /// Bars beside each other.
    Bar,
    /// A line for each series.
    Line,
}

/// The numbers of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name.
    pub name: String,
    /// The numbers.
    pub values: Vec<f64>,
}

/// See [`Component::Image`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// The picture itself, as a `data:` address of a raster type.
    pub src: String,
    /// What it shows, in words.
    pub alt: String,
}

/// See [`Component::Progress`].
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// What is under way.
    pub label: Option<String>,
    /// How much of it is done, 0 to 1; nothing if nobody knows.
    pub value: Option<f64>,
}

/// See [`Component::Code`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// The source.
    pub text: String,
    /// Its language.
    pub language: Option<String>,
}

/// See [`Component::Diff`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// The diff.
    pub text: String,
}

/// See [`Component::Approval`]. What is asked is never taken from the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Its id.
    pub id: String,
    /// The one question to show; otherwise all that wait in the session.
    pub approval_id: Option<String>,
}

impl Component {
    /// Its id, if it has one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Text(it) => it.id.as_deref(),
            Self::Markdown(it) => it.id.as_deref(),
            Self::List(it) => it.id.as_deref(),
            Self::Table(it) => it.id.as_deref(),
            Self::Form(it) => Some(&it.id),
            Self::Chart(it) => it.id.as_deref(),
            Self::Image(it) => it.id.as_deref(),
            Self::Progress(it) => it.id.as_deref(),
            Self::Code(it) => it.id.as_deref(),
            Self::Diff(it) => it.id.as_deref(),
            Self::Approval(it) => Some(&it.id),
        }
    }

    /// Itself and everything below it.
    pub fn each<'a>(&'a self, visit: &mut impl FnMut(&'a Self)) {
        visit(self);
        if let Self::List(list) = self {
            list.items.iter().for_each(|item| item.each(visit));
        }
    }
}
